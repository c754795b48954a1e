"""Keys that the configuration does not have, and which of ours was probably meant: another's or misspelt."""

import json
from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Final, get_args, get_origin

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from appliance.model.config.configuration import Config
from appliance.model.config.section import Section, behind_names
from appliance.model.messages.problems import Path, nearest

FOREIGN_KEYS: Final = {
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
    "on-marked-up": "on_up",
    "send-proxy": "send_proxy",
    "send": "steps",
    "slowstart": "slow_start",
    "tcp-check": "steps",
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


def misspelt(error: ValidationError) -> frozenset[Path]:
    """Return the paths of the keys that were probably meant."""
    unknown = (each["loc"] for each in error.errors(include_url=False) if each["type"] == "extra_forbidden")
    return frozenset((*path[:-1], meant) for path in unknown if (meant := meant_key(path)))


def spelling(error: ValidationError) -> Mapping[Path, str]:
    """Return the key that was probably meant, by the path of the unknown one.

    A key is excluded if its value is a mapping and that of the intended key cannot be one, or the reverse.
    """
    unknown = (each for each in error.errors(include_url=False) if each["type"] == "extra_forbidden")
    found = ((each["loc"], meant_key(each["loc"]), isinstance(each["input"], dict)) for each in unknown)
    return {path: meant for path, meant, has in found if meant and is_mapping((*path[:-1], meant)) == has}


def meant_key(path: Path) -> str | None:
    """Return the key that was meant, None if nothing is similar; other programs' names count first."""
    key, known = str(path[-1]), keys_beside(path)
    translated = FOREIGN_KEYS.get(key)
    return translated if translated in known else nearest(key, known)


def keys_beside(path: Path) -> Mapping[str, FieldInfo]:
    """Return the possible keys of the mapping that contains this path's last key."""
    return fields([str(step) for step in path[:-1]])
