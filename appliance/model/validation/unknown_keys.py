"""Keys that the configuration does not have, and which of ours was probably meant: another's or misspelt."""

from collections.abc import Mapping

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from appliance.model.messages.problems import Path, nearest
from appliance.model.validation.foreign_keys import FOREIGN_KEYS
from appliance.model.validation.known_keys import fields, is_mapping


def misspelt(error: ValidationError) -> frozenset[Path]:
    """Return the paths at which the keys would stand that were probably meant."""
    unknown = (each["loc"] for each in error.errors(include_url=False) if each["type"] == "extra_forbidden")
    return frozenset((*path[:-1], meant) for path in unknown if (meant := meant_key(path)))


def spelling(error: ValidationError) -> Mapping[Path, str]:
    """Return the key that was probably meant, by the path of the unknown one.

    A key is left out where its value is a mapping and that of the key meant cannot be one, or the reverse.
    """
    unknown = (each for each in error.errors(include_url=False) if each["type"] == "extra_forbidden")
    found = ((each["loc"], meant_key(each["loc"]), isinstance(each["input"], dict)) for each in unknown)
    return {path: meant for path, meant, has in found if meant and is_mapping((*path[:-1], meant)) == has}


def meant_key(path: Path) -> str | None:
    """Return the key that was probably meant, None where nothing is similar.

    HAProxy's and keepalived's name for it counts before similar letters.
    """
    key, known = str(path[-1]), keys_beside(path)
    translated = FOREIGN_KEYS.get(key)
    return translated if translated in known else nearest(key, known)


def keys_beside(path: Path) -> Mapping[str, FieldInfo]:
    """Return the keys that may stand in the mapping in which this path's last key stands."""
    return fields([str(step) for step in path[:-1]])
