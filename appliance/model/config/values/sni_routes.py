"""Pools for clients by the server name in their TLS ClientHello: a list whose first match wins.

Names are compared without case (RFC 4343), and regular expressions are those of `model.byte_pattern`.
"""

import re
from collections.abc import Mapping
from typing import Final

from appliance.model.byte_pattern import LONGEST, byte_pattern
from appliance.model.config.values import names
from appliance.model.config.values.mappings import mappings
from appliance.model.messages.quoting import shown
from appliance.model.snapshot.frontends import SniRoute

MOST_ROUTES: Final = 512
MOST_NAMES: Final = 4096
"""Maximum number of names of all routes of a frontend."""

MOST_STATES: Final = 500
"""States of all its regular expressions: a client chooses the name, and what may be looked at is bounded."""

_NAME: Final = re.compile(r"(?:\*\.)?[a-z0-9_](?:[a-z0-9_.-]{0,251}[a-z0-9_])?", re.ASCII)
_KEYS: Final = ("names", "regex", "pool")


def sni_routes(value: object) -> tuple[SniRoute, ...]:
    """Return the routes of a list; raises ValueError with the number of the one that is wrong."""
    found = mappings(
        value, _route, noun="route", most=MOST_ROUTES, keys=_KEYS, example="{names: [...], pool: ...}"
    )
    if sum(len(route.names) for route, _ in found) > MOST_NAMES:
        raise ValueError(f"has more than {MOST_NAMES} names")
    if sum(states for _, states in found) > MOST_STATES:
        raise ValueError(f"its regular expressions have more than {MOST_STATES} states: write names instead")
    return tuple(route for route, _ in found)


def _route(value: Mapping[str, object]) -> tuple[SniRoute, int]:
    """Return a route, and how many states its regular expression has."""
    if ("names" in value) is ("regex" in value):
        raise ValueError("needs either `names` or `regex`")
    if "pool" not in value:
        raise ValueError("needs `pool`")
    pool = names.name(str(value["pool"]))
    if "names" in value:
        return SniRoute(names=_names(value["names"]), pool=pool), 0
    regex = value["regex"] if isinstance(value["regex"], str) else ""
    return SniRoute(regex=regex, pool=pool), _states(regex)


def _names(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise ValueError('`names` must be a list of names, such as `["a.example.com", "*.apps.example.com"]`')
    return tuple(dict.fromkeys(map(server_name, value)))


def server_name(value: object) -> str:
    """Return the name of a server, or `*.` and the end of names, in lower case."""
    name = value.lower() if isinstance(value, str) else ""
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"{shown(value)} is not the name of a server, such as `a.example.com` or `*.example.com`"
        )
    return name


def _states(regex: str) -> int:
    try:
        return len(byte_pattern(regex, no_case=True).states)
    except ValueError as error:
        raise ValueError(f"`regex`: {error}") from None


SCHEMA: Final = {
    "type": "array",
    "minItems": 1,
    "maxItems": MOST_ROUTES,
    "items": {
        "type": "object",
        "additionalProperties": False,
        "required": ["pool"],
        "oneOf": [{"required": ["names"]}, {"required": ["regex"]}],
        "properties": {
            "names": {
                "type": "array",
                "minItems": 1,
                "items": {"type": "string", "pattern": r"^(\*\.)?[A-Za-z0-9_.-]+$"},
                "description": "Server names; *.example.com matches any that ends in .example.com.",
            },
            "regex": {
                "type": "string",
                "minLength": 1,
                "maxLength": LONGEST,
                "description": "Regular expression that must match in the name, ignoring case.",
            },
            "pool": {"type": "string", "description": "Pool for these clients."},
        },
    },
}
"""The schema for editors."""
