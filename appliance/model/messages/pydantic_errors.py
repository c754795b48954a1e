"""What pydantic found, in operators' words: what stands there, and what would be right."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import NoneType
from typing import Final, get_args, get_origin

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from appliance.model.config.configuration import Config
from appliance.model.config.section import Section
from appliance.model.config.values.field_types import or_false, or_off
from appliance.model.config.values.units import INTEGER_PATTERN
from appliance.model.messages import secrets
from appliance.model.messages.problems import Finding, FindingTarget, Path, nearest
from appliance.model.messages.quoting import contrast, shown

_KEY: Final = "[key]"  # pydantic's last step for a key of a mapping that is itself wrong
_QUOTED: Final = re.compile(r"'([^']*)'")

_SHORTHANDS: Final = (("false", or_false), ("off", or_off))

_ELSEWHERE: Final = {  # words of HAProxy and keepalived
    "active_key": "send",
    "addr": "address",
    "advert_int": "advert",
    "auth_hmac": "hmac",
    "auth_pass": "pass",
    "authentication": "auth",
    "backend": "pool",
    "backends": "pools",
    "check-sni": "sni",
    "default_backend": "pool",
    "dev": "interface",
    "downinter": "down_interval",
    "fastinter": "fast_interval",
    "garp_master_delay": "delay",
    "garp_master_refresh": "refresh",
    "garp_master_refresh_repeat": "refresh_repeat",
    "garp_master_repeat": "repeat",
    "inter": "interval",
    "listen": "bind",
    "master": "active",
    "maxconn": "max_connections",
    "maxqueue": "max_queue",
    "mcast_src_ip": "source",
    "monitor-uri": "respond",
    "notify_backup": "backup",
    "notify_fault": "fault",
    "notify_master": "active",
    "notify_stop": "stop",
    "on-marked-down": "on_down",
    "send-proxy": "send_proxy",
    "slowstart": "slow_start",
    "tcp-ut": "tcp_user_timeout",
    "timeout": "timeouts",
    "track_file": "track",
    "track_interface": "track",
    "track_process": "track",
    "track_script": "track",
    "unicast_peer": "peers",
    "unicast_src_ip": "source",
    "url": "http",
    "use_vmac": "virtual_mac",
    "virtual_ipaddress": "addresses",
    "virtual_ipaddress_excluded": "excluded",
    "virtual_router_id": "router_id",
    "vrid": "router_id",
    "vrrp_script": "script",
    "vrrp_sync_group": "sync_group",
    "vrrp_version": "version",
}


def findings(error: ValidationError) -> Iterator[Finding]:
    """Yield what pydantic found."""
    return (_finding(details) for details in error.errors(include_url=False) if not _hollow(details))


def faulty(error: ValidationError) -> frozenset[Path]:
    """Return the paths to leave out so that the rest can be judged: lists whole, what lacks a key whole."""
    return frozenset(_faulty(details) for details in error.errors(include_url=False))


def misspelt(error: ValidationError) -> frozenset[Path]:
    """Return the paths of the keys that unknown keys were probably meant to be."""
    unknown = (each["loc"] for each in error.errors(include_url=False) if each["type"] == "extra_forbidden")
    return frozenset((*path[:-1], meant) for path in unknown if (meant := _meant(path)))


def spelling(error: ValidationError) -> Mapping[Path, str]:
    """Return the keys that unknown keys were probably meant to be, by the unknown keys' paths.

    Left out is what cannot be meant, because it is a mapping and the key's value is none, or the reverse.
    """
    unknown = (each for each in error.errors(include_url=False) if each["type"] == "extra_forbidden")
    found = ((each["loc"], _meant(each["loc"]), isinstance(each["input"], dict)) for each in unknown)
    return {path: meant for path, meant, has in found if meant and _is_mapping((*path[:-1], meant)) == has}


def fields(path: Sequence[str]) -> Mapping[str, FieldInfo]:
    """Return the keys known inside of a path, none where the keys are names."""
    return _of(_type(path))


def _type(path: Sequence[str]) -> object:
    found: object = Config
    for step in path:
        known = _of(found)
        found = _solid(known[step].annotation if known else get_args(found)[1])
    return found


def _is_mapping(path: Path) -> bool:
    found = _type([str(step) for step in path])
    return bool(_of(found)) or get_origin(found) is dict


def _finding(details: ErrorDetails) -> Finding:
    path = _path(details)
    word = _WORDS.get(details["type"], _as_said)
    unknown = details["type"] == "extra_forbidden"
    at_key = _is_key(details) or unknown
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


def _hollow(details: ErrorDetails) -> bool:
    """Tell whether a list is too short only because its faulty items, each told already, do not count."""
    return details["type"] == "too_short" and bool(details["input"])


def _path(details: ErrorDetails) -> Path:
    path = details["loc"]
    return path[:-1] if _is_key(details) else path


def _is_key(details: ErrorDetails) -> bool:
    return details["loc"][-1:] == (_KEY,) and details["type"] != "extra_forbidden"


def _missing(_: ErrorDetails, path: Path) -> str:
    return f"is missing: for example `{path[-1]}: {_example(path)}`"


def _unknown(_: ErrorDetails, path: Path) -> str:
    meant = _meant(path)
    right = f"did you mean `{meant}`?" if meant else f"known here are {', '.join(sorted(_beside(path)))}"
    return f"unknown key `{path[-1]}`: {right}"


def _meant(path: Path) -> str | None:
    """Return the key that an unknown one was probably meant to be."""
    key, known = str(path[-1]), _beside(path)
    translated = _ELSEWHERE.get(key)
    return translated if translated in known else nearest(key, known)


def _beside(path: Path) -> Mapping[str, FieldInfo]:
    return fields([str(step) for step in path[:-1]])


def _mapping(details: ErrorDetails, path: Path) -> str:
    field = _field(path)
    extra = field.json_schema_extra if field else None
    word = next((word for word, shorthand in _SHORTHANDS if shorthand is extra), None)
    if word is None:
        return f"must be a mapping, not {shown(details['input'])}"
    return f"must be a mapping or `{word}`{contrast(details['input'], plain=word)}"


def _kind(kind: str) -> Callable[[ErrorDetails, Path], str]:
    def word(details: ErrorDetails, path: Path) -> str:
        return f"must be {kind} such as `{_example(path)}`, not {shown(details['input'])}"

    return word


def _integer(details: ErrorDetails, path: Path) -> str:
    said = contrast(details["input"], plain=INTEGER_PATTERN)
    such = "" if said.startswith(":") else f" such as `{_example(path)}`"
    return f"must be a whole number{such}{said}"


def _boolean(details: ErrorDetails, _: Path) -> str:
    return f"must be `true` or `false`{contrast(details['input'], plain='true|false')}"


def _bound(key: str, than: str) -> Callable[[ErrorDetails, Path], str]:
    def word(details: ErrorDetails, _: Path) -> str:
        return f"must be {_context(details)[key]} or {than}, not {shown(details['input'])}"

    return word


def _empty(_: ErrorDetails, path: Path) -> str:
    return f"must not be empty: for example `{_example(path)}`"


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
    "too_short": _empty,
    "string_too_short": _empty,
    "enum": _choice,
    "literal_error": _choice,
    "value_error": _own,
}


def _context(details: ErrorDetails) -> Mapping[str, object]:
    return details.get("ctx", {})


def _example(path: Path) -> str:
    field = _field(path)
    example = next(iter(field.examples or ()), field.default) if field else None
    return example if isinstance(example, str) else json.dumps(example)


def _field(path: Path) -> FieldInfo | None:
    """Return the field that a path leads to (an item of a list: into); None where the key is a name."""
    *before, last = (step for step in path if isinstance(step, str))
    return fields(before).get(last)


def _of(annotation: object) -> Mapping[str, FieldInfo]:
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return {field.alias or name: field for name, field in annotation.model_fields.items()}
    return {}


def _solid(annotation: object) -> object:
    """Return `X` of `X | None`."""
    if NoneType not in get_args(annotation):
        return annotation
    return next(each for each in get_args(annotation) if each is not NoneType)
