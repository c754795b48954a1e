"""Turns pydantic's errors into findings in operators' words: the present value, and the correction."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from appliance.model.config.values.field_types import or_false, or_masters, or_off
from appliance.model.config.values.units import INTEGER_PATTERN
from appliance.model.messages import secrets
from appliance.model.messages.problems import Finding, FindingTarget, Path, nearest
from appliance.model.messages.quoting import contrast, shown
from appliance.model.validation.unknown_keys import example, field_at, keys_beside, meant_key

_KEY: Final = "[key]"  # pydantic's last step for a key of a mapping that is itself wrong
_QUOTED: Final = re.compile(r"'([^']*)'")

_SHORTHANDS: Final = (("false", or_false), ("off", or_off), ("masters", or_masters))


def findings(error: ValidationError) -> Iterator[Finding]:
    """Yield a finding for each of pydantic's errors."""
    every = error.errors(include_url=False)
    return (_finding(details) for details in every if not _is_consequence(details, every))


def faulty(error: ValidationError) -> frozenset[Path]:
    """Return the paths to leave out so that the rest can be validated.

    An error in an item leaves out the whole list; a missing key leaves out the mapping that lacks it.
    """
    return frozenset(_faulty(details) for details in error.errors(include_url=False))


def _finding(details: ErrorDetails) -> Finding:
    path = _path(details)
    word = _WORDS.get(details["type"], _as_said)
    unknown = details["type"] == "extra_forbidden"
    at_key = _is_key(details) or _is_name(details) or unknown
    message = word(details, path)
    if secrets.is_secret(path[:-1] if unknown else path):
        message = secrets.without(message, path[-1] if unknown else details["input"])
    return Finding(path=path, message=message, spot=FindingTarget.KEY if at_key else FindingTarget.VALUE)


def _faulty(details: ErrorDetails) -> Path:
    path = _path(details)
    if details["type"] == "missing":
        return path[:-1]
    index = next((at for at, step in enumerate(path) if isinstance(step, int)), len(path))
    return path[:index]


def _is_consequence(details: ErrorDetails, every: Iterable[ErrorDetails]) -> bool:
    """Return whether a list is too short only because pydantic dropped wrong items, reported already."""
    at = details["loc"]
    return details["type"] == "too_short" and any(
        each["loc"][: len(at)] == at and len(each["loc"]) > len(at) for each in every
    )


def _path(details: ErrorDetails) -> Path:
    path = details["loc"]
    return path[:-1] if _is_key(details) else path


def _is_name(details: ErrorDetails) -> bool:
    """Return whether a name is wrong in a mapping that also has keys of its own: it has no last step."""
    path = _path(details)
    return details["type"] == "value_error" and details["input"] == path[-1] and field_at(path) is None


def _is_key(details: ErrorDetails) -> bool:
    before, last = details["loc"][-2:] if len(details["loc"]) > 1 else (None, None)
    return last == _KEY and before == details["input"] and details["type"] != "extra_forbidden"


def _missing(_: ErrorDetails, path: Path) -> str:
    return f"is missing: for example `{path[-1]}: {example(path)}`"


def _unknown(_: ErrorDetails, path: Path) -> str:
    meant = meant_key(path)
    right = f"did you mean `{meant}`?" if meant else f"known here are {', '.join(sorted(keys_beside(path)))}"
    return f"unknown key `{path[-1]}`: {right}"


def _mapping(details: ErrorDetails, path: Path) -> str:
    field = field_at(path)
    extra = field.json_schema_extra if field else None
    word = next((word for word, shorthand in _SHORTHANDS if shorthand is extra), None)
    if word is None:
        return f"must be a mapping, not {shown(details['input'])}"
    return f"must be a mapping or `{word}`{contrast(details['input'], plain=word)}"


def _kind(kind: str) -> Callable[[ErrorDetails, Path], str]:
    def word(details: ErrorDetails, path: Path) -> str:
        return f"must be {kind} such as `{example(path)}`, not {shown(details['input'])}"

    return word


def _integer(details: ErrorDetails, path: Path) -> str:
    said = contrast(details["input"], plain=INTEGER_PATTERN)
    such = "" if said.startswith(":") else f" such as `{example(path)}`"
    return f"must be a whole number{such}{said}"


def _boolean(details: ErrorDetails, _: Path) -> str:
    return f"must be `true` or `false`{contrast(details['input'], plain='true|false')}"


def _bound(key: str, than: str) -> Callable[[ErrorDetails, Path], str]:
    def word(details: ErrorDetails, _: Path) -> str:
        return f"must be {_context(details)[key]} or {than}, not {shown(details['input'])}"

    return word


def _empty(_: ErrorDetails, path: Path) -> str:
    return f"must not be empty: for example `{example(path)}`"


def _short(details: ErrorDetails, path: Path) -> str:
    least, found = _context(details)["min_length"], _context(details)["actual_length"]
    return f"must have {least} or more, not {found}" if found else _empty(details, path)


def _long(details: ErrorDetails, _: Path) -> str:
    return f"must have {_context(details)['max_length']} characters or less"


def _choice(details: ErrorDetails, _: Path) -> str:
    choices = _QUOTED.findall(str(_context(details)["expected"]))
    meant = nearest(str(details["input"]), choices)
    hint = f": did you mean `{meant}`?" if meant else ""
    return f"must be one of {', '.join(choices)}, not {shown(details['input'])}{hint}"


def _own(details: ErrorDetails, _: Path) -> str:
    return str(_context(details)["error"])


def _as_said(details: ErrorDetails, _: Path) -> str:
    return details["msg"]


_WORDS: Final[Mapping[str, Callable[[ErrorDetails, Path], str]]] = {
    "missing": _missing,
    "extra_forbidden": _unknown,
    "model_type": _mapping,
    "dict_type": _mapping,
    "tuple_type": _kind("a list"),
    "int_type": _integer,
    "string_type": _kind("text, in quotes if need be,"),
    "bool_type": _boolean,
    "greater_than_equal": _bound("ge", "more"),
    "less_than_equal": _bound("le", "less"),
    "too_short": _short,
    "string_too_short": _empty,
    "string_too_long": _long,
    "enum": _choice,
    "literal_error": _choice,
    "value_error": _own,
}


def _context(details: ErrorDetails) -> Mapping[str, object]:
    return details.get("ctx", {})
