"""Pools for clients by their networks: a list whose first match wins."""

from collections.abc import Mapping
from typing import Final

from appliance.model.config.values import names
from appliance.model.config.values.addresses import network
from appliance.model.config.values.mappings import mappings
from appliance.model.snapshot.frontends import ClientRoute

MOST_ROUTES: Final = 512
_KEYS: Final = ("networks", "pool")


def client_routes(value: object) -> tuple[ClientRoute, ...]:
    """Return the routes of a list; raises ValueError with the number of the one that is wrong."""
    example = "{networks: [...], pool: ...}"
    return mappings(value, _route, noun="route", most=MOST_ROUTES, keys=_KEYS, example=example)


def _route(value: Mapping[str, object]) -> ClientRoute:
    if "pool" not in value:
        raise ValueError("needs `pool`")
    given = value.get("networks")
    if not isinstance(given, list) or not given:
        raise ValueError('`networks` must be a list of networks, such as `["10.0.0.0/8", "2001:db8::/32"]`')
    return ClientRoute(
        networks=tuple(dict.fromkeys(map(network, given))), pool=names.name(str(value["pool"]))
    )


SCHEMA: Final = {
    "type": "array",
    "minItems": 1,
    "maxItems": MOST_ROUTES,
    "items": {
        "type": "object",
        "additionalProperties": False,
        "required": ["networks", "pool"],
        "properties": {
            "networks": {
                "type": "array",
                "minItems": 1,
                "items": {"type": "string"},
                "description": "Networks of these clients.",
            },
            "pool": {"type": "string", "description": "Pool for these clients."},
        },
    },
}
"""The schema for editors."""
