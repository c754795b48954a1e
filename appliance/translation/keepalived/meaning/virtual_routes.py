"""`virtual_routes` and `virtual_rules`: lines of ip-route(8) and ip-rule(8), of the kinds supported here."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Final

from appliance.model.config.values.virtual_routes import (
    EVERYWHERE,
    LAST_PRIORITY,
    MOST_TABLE,
    routes,
    rules,
)
from appliance.model.document.tree import Plain
from appliance.model.messages.quoting import shown
from appliance.model.snapshot.virtual_router import MAIN_TABLE, VirtualRoute, VirtualRule
from appliance.translation.keepalived.meaning.instance_draft import Instance
from appliance.translation.keepalived.meaning.values import DirectiveError, address, faults_in, whole
from appliance.translation.keepalived.syntax.directives import Directive
from appliance.translation.keepalived.syntax.located_text import Word

_ALL: Final = frozenset(("default", "any", "all"))
_EVERY: Final = (None, *EVERYWHERE.values())
_TABLES: Final = {"main": MAIN_TABLE, "default": 253}
_LINK: Final = "link"
_GLOBAL: Final = "global"
_SCOPES: Final = frozenset((_LINK, _GLOBAL, "host", "site", "nowhere"))
_IGNORED: Final = {
    "no_track": "a removed route or rule is restored",
    "protocol": "routes of virtual IPs have the protocol 112 in the kernel",
}
_ROUTE: Final = {
    "to": "to",
    "via": "via",
    "gw": "via",
    "dev": "interface",
    "oif": "interface",
    "src": "source",
    "scope": "scope",
    "table": "table",
    "metric": "metric",
    "priority": "metric",
    "preference": "metric",
    "protocol": "protocol",
}
_ROUTE_KEYS: Final = ("to", "via", "interface", "source", "table", "metric", "onlink")
_RULE: Final = {
    "from": "from",
    "to": "to",
    "table": "table",
    "lookup": "table",
    "priority": "priority",
    "preference": "priority",
}
_Words = Mapping[str, Word]


def virtual_routes(instance: Instance, given: Directive) -> None:
    """Take `virtual_routes`."""
    _each(instance, given, _Kind(key="routes", read=_route, meant=routes))


def virtual_rules(instance: Instance, given: Directive) -> None:
    """Take `virtual_rules`."""
    _each(instance, given, _Kind(key="rules", read=_rule, meant=rules))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """Routes or rules: `read` parses the values of our key, `meant` what our configuration makes of them."""

    key: str
    read: Callable[[Instance, Directive], Mapping[str, Plain]]
    meant: Callable[[object], tuple[VirtualRoute | VirtualRule, ...]]


def _each(instance: Instance, given: Directive, kind: _Kind) -> None:
    before: dict[object, VirtualRoute | VirtualRule] = {}
    for each in given.within:
        if each.block is not None:
            instance.ledger.refuse(each.place, f"{shown(each.keyword)} takes no block in `{given.keyword}`")
            continue
        with faults_in(instance.ledger):
            value = dict(kind.read(instance, each))
            found = _meant(kind, value, each)
            there = before.setdefault(found.place if isinstance(found, VirtualRoute) else found, found)
            if there is found:
                instance.append(kind.key, value=value, place=each.place)
            elif there == found:
                instance.ledger.ignore(each.place, "is listed already")
            else:
                raise DirectiveError(f"conflicts with `{there}`: only one of the two is possible", each.place)


def _meant(kind: _Kind, value: Mapping[str, Plain], given: Directive) -> VirtualRoute | VirtualRule:
    try:
        (found,) = kind.meant([value])
    except ValueError as error:
        raise DirectiveError(str(error).partition(" 1: ")[2], given.place) from None
    return found


def _route(instance: Instance, given: Directive) -> Mapping[str, Plain]:
    words = _said(instance, given, _ROUTE, alone=("onlink", "no_track"), target="to")
    if "to" not in words:
        raise DirectiveError("has no destination network", given.place)
    if not words.keys() & {"via", "interface"}:
        raise DirectiveError("has neither `via` nor `dev`, and the kernel refuses such a route", given.place)
    ends = {key: str(address(words[key])) for key in ("via", "source") if key in words}
    family = 6 if any(":" in each for each in ends.values()) else 4
    to = _network(instance, words["to"]) or EVERYWHERE[family]
    _scope(instance, words, to)
    found: dict[str, Plain] = {"to": to, **ends}
    if "interface" in words:
        found["interface"] = words["interface"].text
    if "table" in words:
        found["table"] = _table(words["table"])
    if "metric" in words:
        found["metric"] = whole(words["metric"], least=1, most=MOST_TABLE)
    if "onlink" in words:
        found["onlink"] = True
    return {key: found[key] for key in _ROUTE_KEYS if key in found}


def _rule(instance: Instance, given: Directive) -> Mapping[str, Plain]:
    words = _said(instance, given, _RULE, alone=("no_track",), target=None)
    ends = {key: _network(instance, words[key]) for key in ("from", "to") if key in words}
    found: dict[str, Plain] = {key: each for key, each in ends.items() if each not in _EVERY}
    if not found:
        raise DirectiveError("has neither `from` nor `to`: it would match all packets", given.place)
    if "table" not in words:
        raise DirectiveError("has no `table`: no other rules are supported", given.place)
    found["table"] = _table(words["table"])
    if "priority" in words:
        found["priority"] = whole(words["priority"], least=1, most=LAST_PRIORITY)
    else:
        found["priority"] = _next_priority(instance, given, str(found.get("from", found.get("to"))))
    return found


def _said(
    instance: Instance,
    given: Directive,
    keys: Mapping[str, str],
    *,
    alone: Collection[str],
    target: str | None,
) -> _Words:
    """Return the options of a line, by the names of our keys; the one without a name is the `target`."""
    found: dict[str, Word] = {}
    for key, word in _pairs(given, keys, alone, target):
        if key in _IGNORED:
            instance.ledger.ignore(word.place, f"`{key}`: {_IGNORED[key]}")
        elif key in found:
            raise DirectiveError(f"{shown(word.text)} is a second `{key}`", word.place)
        else:
            found[key] = word
    return found


def _pairs(
    given: Directive, keys: Mapping[str, str], alone: Collection[str], target: str | None
) -> Iterator[tuple[str, Word]]:
    words = list(given.words)
    while words:
        word = words.pop(0)
        if word.text in alone:
            yield word.text, word
        elif word.text in keys:
            if not words:
                raise DirectiveError(f"`{word.text}` needs a value", word.place)
            yield keys[word.text], words.pop(0)
        elif target is not None and (word.text in _ALL or word.text[:1].isdigit() or ":" in word.text):
            yield target, word
        else:
            known = ", ".join(dict.fromkeys((*keys, *alone)))
            raise DirectiveError(f"{shown(word.text)} is not supported: {known}", word.place)


def _network(instance: Instance, word: Word) -> str | None:
    """Return a network, None for the default network of a family that the word does not show."""
    if word.text in _ALL:
        return None
    host, slash, length = word.text.partition("/")
    found = address(Word(text=host, place=word.place))
    width = found.max_prefixlen
    bits = whole(Word(text=length, place=word.place), least=0, most=width) if slash else width
    network = ip_network((found, bits), strict=False)
    if network.network_address != found:
        reason = f"has bits set beyond its prefix, and becomes {network} (the kernel refuses such a route)"
        instance.ledger.change(word.place, reason)
    return str(network)


def _scope(instance: Instance, words: _Words, to: str) -> None:
    word = words.get("scope")
    if word is None:
        return
    if word.text not in _SCOPES:
        raise DirectiveError(f"{shown(word.text)} is not a scope of a route", word.place)
    own = _GLOBAL if "via" in words else _LINK
    if word.text != own and ":" not in to:
        instance.ledger.change(word.place, "a route has scope link without a gateway, and global with one")


def _table(word: Word) -> int:
    if word.text in _TABLES:
        return _TABLES[word.text]
    if word.text.isdecimal():
        return whole(word, least=1, most=MOST_TABLE)
    reason = f"{shown(word.text)} is a name in the machine's rt_tables: write the table's number"
    raise DirectiveError(reason, word.place)


def _next_priority(instance: Instance, given: Directive, network: str) -> int:
    """Return keepalived's priority for a rule without one: for each family one less than the last."""
    priorities = instance.surface.rule_priorities
    family = 6 if ":" in network else 4
    found, priorities[family] = priorities[family], priorities[family] - 1
    instance.ledger.change(given.place, f"has no `priority`, and gets {found}, as in keepalived")
    return found
