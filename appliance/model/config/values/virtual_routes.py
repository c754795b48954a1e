"""Routes and rules that come and go with virtual addresses: lists of mappings, of either version of IP."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from appliance.model.config.values import vrrp
from appliance.model.config.values.addresses import network
from appliance.model.config.values.mappings import mappings
from appliance.model.messages.quoting import shown
from appliance.model.snapshot.virtual_router import MAIN_TABLE, VirtualRoute, VirtualRule

MOST: Final = 128
"""Maximum number of routes, or rules, of a virtual IP, which are set one by one while addresses move."""

MOST_TABLE: Final = 2**32 - 1
LAST_PRIORITY: Final = 32765
"""Greatest priority of a rule: the kernel's own rule of the table main is 32766."""

DEFAULT: Final = "default"
EVERYWHERE: Final = {4: "0.0.0.0/0", 6: "::/0"}
_Reader = Callable[[object], str]
_ROUTE_KEYS: Final = ("to", "via", "interface", "source", "table", "metric", "onlink")
_RULE_KEYS: Final = ("from", "to", "table", "priority")


def routes(value: object) -> tuple[VirtualRoute, ...]:
    """Return the routes of a list; raises ValueError with the number of the one that is wrong."""
    found = mappings(
        value, _route, noun="route", most=MOST, keys=_ROUTE_KEYS, example="{to: 10.1.0.0/16, via: 10.0.0.1}"
    )
    # Only one of them could be there, by whatever it is reached.
    _refuse_twice("route", [each.place for each in found])
    return found


def rules(value: object) -> tuple[VirtualRule, ...]:
    """Return the rules of a list; raises ValueError with the number of the one that is wrong."""
    found = mappings(
        value,
        _rule,
        noun="rule",
        most=MOST,
        keys=_RULE_KEYS,
        example="{from: 10.0.0.200, table: 1, priority: 100}",
    )
    _refuse_twice("rule", found)
    return found


def _refuse_twice(noun: str, found: Sequence[object]) -> None:
    for number, each in enumerate(found, start=1):
        first = found.index(each) + 1
        if first != number:
            raise ValueError(f"{noun} {number}: is listed already, as {noun} {first}")


def _route(value: Mapping[str, object]) -> VirtualRoute:
    if "to" not in value:
        raise ValueError("needs `to`: a network, or `default`")
    via, source = (_said(value, key, vrrp.router_address) for key in ("via", "source"))
    to = _target(value["to"], via or source)
    for key, address in (("via", via), ("source", source)):
        if address is not None and (":" in address) != (":" in to):
            raise ValueError(f"`{key}`: `{address}` is not of the family of `{to}`")
    onlink = value.get("onlink", False)
    if not isinstance(onlink, bool):
        raise ValueError(f"`onlink` must be true or false, not {shown(onlink)}")  # noqa: TRY004  # pydantic's
    if onlink and via is None:
        raise ValueError("`onlink` means nothing without `via`")
    return VirtualRoute(
        to=to,
        via=via,
        interface=_said(value, "interface", vrrp.interface),
        source=source,
        table=_number(value, "table", most=MOST_TABLE) if "table" in value else MAIN_TABLE,
        metric=_number(value, "metric", most=MOST_TABLE) if "metric" in value else None,
        onlink=onlink,
    )


def _rule(value: Mapping[str, object]) -> VirtualRule:
    source, to = (_said(value, key, _part) for key in ("from", "to"))
    if source is None and to is None:
        raise ValueError("needs `from`, `to` or both: otherwise it would match all packets")
    if source is not None and to is not None and (":" in source) != (":" in to):
        raise ValueError(f"`{source}` and `{to}` are not of one family")
    for key in ("table", "priority"):
        if key not in value:
            raise ValueError(f"needs `{key}`")
    return VirtualRule(
        source=source,
        to=to,
        table=_number(value, "table", most=MOST_TABLE),
        priority=_number(value, "priority", most=LAST_PRIORITY),
    )


def _part(value: object) -> str:
    found = network(value)
    if found in EVERYWHERE.values():
        raise ValueError(f"`{found}` is every packet's: leave it out")
    return found


def _target(value: object, neighbour: str | None) -> str:
    if value != DEFAULT:
        return _of_key("to", value, network)
    if neighbour is None:
        raise ValueError("`to: default` has no family without `via`: write `0.0.0.0/0` or `::/0`")
    return EVERYWHERE[6 if ":" in neighbour else 4]


def _said(value: Mapping[str, object], key: str, read: _Reader) -> str | None:
    return _of_key(key, value[key], read) if key in value else None


def _of_key(key: str, value: object, read: _Reader) -> str:
    try:
        return read(value)
    except ValueError as error:
        raise ValueError(f"`{key}`: {error}") from None


def _number(value: Mapping[str, object], key: str, *, most: int) -> int:
    number = value[key]
    if isinstance(number, int) and not isinstance(number, bool) and 1 <= number <= most:
        return number
    raise ValueError(f"`{key}` must be a whole number from 1 to {most}, not {shown(number)}")


_NETWORK: Final = {"type": "string", "pattern": "^[0-9A-Fa-f:./]+$"}
_ADDRESS: Final = {"type": "string", "pattern": "^[0-9A-Fa-f:.]+$"}
_TABLE: Final = {"type": "integer", "minimum": 1, "maximum": MOST_TABLE}

ROUTES_SCHEMA: Final = {
    "type": "array",
    "minItems": 1,
    "maxItems": MOST,
    "items": {
        "type": "object",
        "additionalProperties": False,
        "required": ["to"],
        "properties": {
            "to": {
                "type": "string",
                "pattern": f"{_NETWORK['pattern']}|^{DEFAULT}$",
                "description": "Destination network, or default.",
            },
            "via": {
                **_ADDRESS,
                "description": "Gateway; without it, the network is directly on the interface.",
            },
            "interface": {
                "type": "string",
                "pattern": vrrp.INTERFACE_PATTERN,
                "description": "Default: the one that reaches the gateway, else the virtual IP's.",
            },
            "source": {
                **_ADDRESS,
                "description": "Source address of connections from this machine (src).",
            },
            "table": {**_TABLE, "default": MAIN_TABLE, "description": "Number of the routing table."},
            "metric": {**_TABLE, "description": "Of several routes to a network, the lowest metric wins."},
            "onlink": {
                "type": "boolean",
                "default": False,
                "description": "Whether the gateway is on the interface, regardless of its addresses.",
            },
        },
    },
}
"""The schema of routes for editors."""

RULES_SCHEMA: Final = {
    "type": "array",
    "minItems": 1,
    "maxItems": MOST,
    "items": {
        "type": "object",
        "additionalProperties": False,
        "required": ["table", "priority"],
        "anyOf": [{"required": ["from"]}, {"required": ["to"]}],
        "properties": {
            "from": {**_NETWORK, "description": "Source network or address of packets."},
            "to": {**_NETWORK, "description": "Destination network or address of packets."},
            "table": {**_TABLE, "description": "Number of the routing table for these packets."},
            "priority": {
                "type": "integer",
                "minimum": 1,
                "maximum": LAST_PRIORITY,
                "description": "Rules apply from the lowest number on; 32766 is the table main's.",
            },
        },
    },
}
"""The schema of rules for editors."""
