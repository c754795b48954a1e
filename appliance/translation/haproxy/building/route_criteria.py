"""What a rule of `use_backend` matches: a client's network, the server name of a ClientHello, the port."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from appliance.model.byte_pattern import byte_pattern
from appliance.model.config.values.sni_routes import server_name
from appliance.model.messages.quoting import shown
from appliance.translation.haproxy.building.client_networks import (
    ClientNetworks,
    Condition,
    ConditionError,
    signed_terms,
)
from appliance.translation.haproxy.text.lines import Line

_ASKED: Final = "use client networks (`src`), server names (`req.ssl_sni`) or ports (`dst_port`)"
_NOT_BOTH: Final = "`src` and a server name cannot be in one rule: write a rule for either"
_ONE_ACL: Final = "write one `acl` with all networks, and use only that one"
_NAMES: Final = frozenset({"req.ssl_sni", "req_ssl_sni"})
_HELLO: Final = frozenset({"req.ssl_hello_type", "req_ssl_hello_type"})
_LOWER: Final = ",lower"
_PORT: Final = "dst_port"
_SOURCE: Final = "src"
_MOST_PORT: Final = 65535
_OPERATORS: Final = ("eq", "ge", "gt", "le", "lt")
_RANGE: Final = re.compile(r"([0-9]{1,5})(?::([0-9]{1,5}))?", re.ASCII)
_SPECIAL: Final = re.compile(r"([^A-Za-z0-9])")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerNames:
    """Names and regular expressions, one of which must match; `cased`: HAProxy compares their case."""

    names: tuple[str, ...] = ()
    regexes: tuple[str, ...] = ()
    cased: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Ports from the first to the last of each range, or with `negated` all others."""

    ranges: tuple[tuple[int, int], ...]
    negated: bool

    def __contains__(self, port: int) -> bool:
        return any(first <= port <= last for first, last in self.ranges) is not self.negated


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """Conditions that must all hold: these ports, and the names or the clients, if there are any."""

    ports: tuple[Ports, ...]
    asked: ServerNames | Condition | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteCondition:
    """Branches of which one must hold, or with `negated` none; `lines` are those of its `acl`s."""

    branches: tuple[Branch, ...] = ()
    negated: bool = False
    lines: tuple[Line, ...] = ()

    def routed(self, port: int) -> ServerNames | Condition | bool:
        """Return the names or clients that are routed at a port; True for every client, False for none."""
        holding = [each.asked for each in self.branches if all(port in ports for ports in each.ports)]
        names = [each for each in holding if isinstance(each, ServerNames)]
        clients = [each for each in holding if isinstance(each, Condition)]
        if not self.branches or len(names) + len(clients) < len(holding):
            return not self.negated
        if clients:
            return _either(clients, negated=self.negated)
        return _joined(names) if names else self.negated


def route_condition(
    words: Sequence[str], acls: Mapping[str, list[Line]], networks: ClientNetworks
) -> RouteCondition:
    """Return the condition of `if ...` or `unless ...`; raises ConditionError if we do not support it."""
    if not words:
        return RouteCondition()
    word, *rest = words
    terms = list(signed_terms(rest))
    if word not in {"if", "unless"} or not terms:
        raise ConditionError(f"{shown(word)}: expected `if` or `unless` and a condition")
    branches: list[list[tuple[bool, tuple[str, ...]]]] = [[]]
    for negated, join, term in terms:
        if join == "or":
            branches.append([])
        branches[-1].append((negated, term))
    found = tuple(_branch(each, acls, networks) for each in branches)
    names = any(isinstance(each.asked, ServerNames) for each in found)
    clients = [each.asked for each in found if isinstance(each.asked, Condition)]
    if names and clients:
        raise ConditionError(_NOT_BOTH)
    if word == "unless" and names:
        raise ConditionError("`unless` with a server name is not supported: write `if` rules for the others")
    if len(clients) > 1 and any(each.negated for each in clients):
        raise ConditionError(f"client networks joined by `or` cannot be negated: {_ONE_ACL}")
    lines = tuple(line for _, _, term in terms for line in acls.get(term[0], ()) if len(term) == 1)
    return RouteCondition(branches=found, negated=word == "unless", lines=lines)


def _branch(
    terms: Iterable[tuple[bool, tuple[str, ...]]], acls: Mapping[str, list[Line]], networks: ClientNetworks
) -> Branch:
    ports: list[Ports] = []
    names: list[ServerNames] = []
    clients: list[Condition] = []
    hello = False
    for negated, term in terms:
        criteria = _criteria(term, acls)
        asked = {_kind(each) for each in criteria}
        if len(asked) > 1 or (negated and not asked <= {_PORT, _SOURCE}):
            raise ConditionError(
                f"{shown(' '.join(term))}: only ports and client networks can be negated, "
                "and criteria cannot be mixed"
            )
        if asked == {_PORT}:
            ranges = tuple(each for words in criteria for each in _ports(words))
            ports.append(Ports(ranges=ranges, negated=negated))
        elif asked == {_SOURCE}:
            found = tuple(each for words in criteria for each in networks.of_source(words))
            clients.append(Condition(networks=found, negated=negated))
        elif asked == {"name"}:
            names.append(_joined([_server_names(words) for words in criteria]))
        else:
            hello = True
    return Branch(ports=tuple(ports), asked=_asked(names, clients, hello=hello))


def _asked(
    names: Sequence[ServerNames], clients: Sequence[Condition], *, hello: bool
) -> ServerNames | Condition | None:
    """Return what must hold besides the ports."""
    if clients and (names or hello):
        raise ConditionError(_NOT_BOTH)
    if len(clients) > 1 and not all(each.negated for each in clients):
        raise ConditionError(f"two client networks that must both match are not supported: {_ONE_ACL}")
    if len(names) > 1:
        raise ConditionError("two server names that must both match are not supported: write one")
    if hello and not names:
        raise ConditionError(
            "a rule cannot match a ClientHello alone: connections without TLS go to the default"
        )
    if clients:
        return _either(clients, negated=False)
    return names[0] if names else None


def _either(clients: Sequence[Condition], *, negated: bool) -> Condition:
    """Return the clients of all networks, of which all are negated or none."""
    networks = tuple(dict.fromkeys(network for each in clients for network in each.networks))
    return Condition(networks=networks, negated=clients[0].negated is not negated)


def _criteria(term: tuple[str, ...], acls: Mapping[str, list[Line]]) -> list[tuple[str, ...]]:
    if len(term) == 1 and term[0] in acls:
        return [line.texts[2:] for line in acls[term[0]]]
    return [term]


def _kind(words: Sequence[str]) -> str:
    fetch = words[0] if words else ""
    if fetch.removesuffix(_LOWER) in _NAMES:
        return "name"
    if fetch in _HELLO and words[1:] == ("1",):
        return "hello"
    if fetch in {_PORT, _SOURCE}:
        return fetch
    raise ConditionError(f"connections are not routed by {shown(' '.join(words))}: {_ASKED}")


def _server_names(words: Sequence[str]) -> ServerNames:
    method, cased, values = _options(words)
    cased = cased and method != "found"
    if method == "found":
        return ServerNames(regexes=(".",))
    if not values:
        raise ConditionError(f"{shown(words[0])} needs names")
    found = [_MATCHES[method](each) for each in values]
    return _joined([ServerNames(names=names, regexes=regexes, cased=cased) for names, regexes in found])


def _options(words: Sequence[str]) -> tuple[str, bool, list[str]]:
    """Return the method of `-m`, whether case counts, and the values."""
    method, cased, at = "str", not words[0].endswith(_LOWER), 1
    while at < len(words) and words[at].startswith("-"):
        option = words[at]
        at += 1
        if option == "--":
            break
        if option == "-i":
            cased = False
        elif option == "-m" and (words[at] if at < len(words) else "") in {*_MATCHES, "found"}:
            method = words[at]
            at += 1
        elif option != "-n":
            given = " ".join((option, *words[at : at + 1]))
            raise ConditionError(f"{shown(given)} is not supported for server names: write the names")
    return method, cased, list(words[at:])


_Match = tuple[tuple[str, ...], tuple[str, ...]]
"""Names and regular expressions."""


def _exactly(value: str) -> _Match:
    return (_name(value),), ()


def _at_end(value: str) -> _Match:
    if value.startswith("."):
        return (_name(f"*{value}"),), ()
    return (), (f"{_plain(value)}$",)


def _expression(value: str) -> _Match:
    try:
        byte_pattern(value)
    except ValueError as error:
        raise ConditionError(str(error)) from None
    return (), (value,)


def _plain(value: str) -> str:
    """Return a regular expression that matches a text."""
    if not value.isascii() or not value.isprintable():
        raise ConditionError(f"{shown(value)} cannot be part of a server name")
    return _SPECIAL.sub(r"\\\1", value)


def _name(value: str) -> str:
    try:
        return server_name(value)
    except ValueError as error:
        raise ConditionError(str(error)) from None


_MATCHES: Final = {
    "str": _exactly,
    "end": _at_end,
    "beg": lambda value: ((), (f"^{_plain(value)}",)),
    "sub": lambda value: ((), (_plain(value),)),
    "reg": _expression,
}


def _joined(every: Sequence[ServerNames]) -> ServerNames:
    return ServerNames(
        names=tuple(dict.fromkeys(name for each in every for name in each.names)),
        regexes=tuple(dict.fromkeys(regex for each in every for regex in each.regexes)),
        cased=any(each.cased for each in every),
    )


def _ports(words: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the ranges of `dst_port 443 8000:8100`, `dst_port ge 1024`."""
    values = list(words[1:])
    operator = values.pop(0) if values and values[0] in _OPERATORS else "eq"
    if not values:
        raise ConditionError("`dst_port` needs ports")
    for value in values:
        found = _RANGE.fullmatch(value)
        if not found or (found[2] and operator != "eq"):
            raise ConditionError(
                f"{shown(value)} is not a port: write `dst_port 443` or `dst_port 8000:8100`"
            )
        yield _compared(operator, int(found[1]), int(found[2] or found[1]))


def _compared(operator: str, first: int, last: int) -> tuple[int, int]:
    match operator:
        case "eq":
            return first, last
        case "ge" | "gt":
            return first + (operator == "gt"), _MOST_PORT
        case _:
            return 0, last - (operator == "lt")
