"""Which keys the configuration has at a path, looked up in pydantic's model: type, default, example."""

import json
from collections.abc import Mapping, Sequence
from types import NoneType
from typing import get_args, get_origin

from pydantic.fields import FieldInfo

from appliance.model.config.configuration import Config
from appliance.model.config.section import Section, behind_names
from appliance.model.messages.problems import Path


def fields(path: Sequence[str]) -> Mapping[str, FieldInfo]:
    """Return the keys of the mapping at a path; empty if its keys are names, as in `pools`."""
    return _of(_type(path))


def _type(path: Sequence[str]) -> object:
    found: object = Config
    for step in path:
        known = _of(found)
        found = _solid(known[step].annotation if step in known else _named(found))
    return found


def is_mapping(path: Path) -> bool:
    """Return whether the value at a path is a mapping."""
    found = _type([str(step) for step in path])
    return bool(_of(found)) or get_origin(found) is dict


def example(path: Path) -> str:
    """Return an example of the value at a path, as YAML writes it."""
    field = field_at(path)
    shown = next(iter(field.examples or ()), field.default) if field else None
    return shown if isinstance(shown, str) else json.dumps(shown)


def field_at(path: Path) -> FieldInfo | None:
    """Return the field at a path, the list's for an item of a list; None if the key is a name."""
    *before, last = (step for step in path if isinstance(step, str))
    return fields(before).get(last)


def _named(annotation: object) -> object:
    """Return the type behind each name in a mapping of named things that also has keys of its own."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return behind_names(annotation)
    return get_args(annotation)[1]


def _of(annotation: object) -> Mapping[str, FieldInfo]:
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return {field.alias or name: field for name, field in annotation.model_fields.items()}
    return {}


def _solid(annotation: object) -> object:
    """Return `X` of `X | None`."""
    if NoneType not in get_args(annotation):
        return annotation
    return next(each for each in get_args(annotation) if each is not NoneType)
