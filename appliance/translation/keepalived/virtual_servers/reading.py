"""The virtual servers of a file: each becomes a frontend and a pool, or one line that says why not.

A refused line refuses its whole virtual server: without its check, limit or scheduler it would be more open
than the file says.
"""

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

from appliance.model.config.pools import MOST_FURTHER_CHECKS
from appliance.model.config.values.addresses import Endpoint, dns_name
from appliance.model.document.tree import Plain
from appliance.model.messages.problems import FilePosition
from appliance.model.messages.quoting import shown
from appliance.translation.keepalived.ledger import Ledger
from appliance.translation.keepalived.meaning.values import (
    DirectiveError,
    faults_in,
    only,
    own_name,
)
from appliance.translation.keepalived.syntax.directives import Directive
from appliance.translation.keepalived.virtual_servers.blocks import Block
from appliance.translation.keepalived.virtual_servers.building import frontend, pool
from appliance.translation.keepalived.virtual_servers.check_times import Keys, times_of
from appliance.translation.keepalived.virtual_servers.checkers import (
    TCP,
    Checker,
    plain,
    requests_of,
)
from appliance.translation.keepalived.virtual_servers.real_server import RealServer
from appliance.translation.keepalived.virtual_servers.virtual_server import (
    GROUP,
    VirtualServer,
    group_of,
    virtual_server,
)
from appliance.translation.translation import INGRESS_PORTS, LineOutcome, Outcome
from appliance.translation.tree_builder import TreeBuilder

_NOBODY: Final = "has no valid `real_server`: keepalived ignores it, and so does the appliance"


def check_of(server: RealServer, around: Block) -> Keys | None:
    """Return the check of a server, None if it is always up; raises DirectiveError."""
    found = _checkers(server)
    if not found:
        return None
    times, *others = [times_of(each, server, around) for each in found]
    for checker, each in zip(found[1:], others, strict=True):
        if plain(each) != plain(times):
            reason = "the checks of one server have the same times and retries here: remove one, or adapt it"
            raise DirectiveError(reason, checker.head.place)
    first, *further = [keys for each in found for keys in _of_checker(each, server, around)]
    if len(further) > MOST_FURTHER_CHECKS:
        reason = f"a server has at most {MOST_FURTHER_CHECKS + 1} checks here"
        raise DirectiveError(reason, found[-1].head.place)
    keys = {**first, **times}
    if further:
        also: dict[str, Plain] = {
            f"check-{at}": plain(_beside(each, first, server)) for at, each in enumerate(further, start=2)
        }
        keys["also"] = (also, server.head.place)
    return keys


def _of_checker(found: Checker, server: RealServer, around: Block) -> list[Keys]:
    """Return the keys of each connection that a checker makes: one for each `url`."""
    return [{**found.keys, **_named(each, found)} for each in requests_of(found, server, around) or [{}]]


def _beside(keys: Keys, first: Keys, server: RealServer) -> Keys:
    """Return a further check as it differs from the first, whose address, port and type it has otherwise."""
    usual: Keys = {
        "address": (server.address.host, server.head.place),
        "port": (server.address.port, server.head.place),
    }
    own = {key: keys.get(key, value) for key, value in usual.items() if key in first}
    found = {**keys, **own}
    shared = [key for key in ("type", "address", "port") if key in found and key in first]
    same = [key for key in shared if found[key][0] == first[key][0]]
    return {key: value for key, value in found.items() if key not in same}


def _checkers(server: RealServer) -> list[Checker]:
    """Return the checkers without those that others cover: any checker over TCP connects as well."""
    others = [each for each in server.checkers if each.head.keyword != TCP]
    asked = {each.target for each in others}
    found = []
    for each in server.checkers:
        if each.head.keyword == TCP and each.target in asked:
            reason = "another check of this server connects there as well, and tests more"
            each.ledger.ignore(each.head.place, reason)
            each.ledger.leave_out(each.head.places, f"belongs to `{TCP}`, line {each.head.place.line}")
        else:
            found.append(each)
    return found


def _named(request: Keys, found: Checker) -> Keys:
    """Return the keys of a request, with the name that the TLS handshake sends: `sni_name`, or its host."""
    if "sni" in found.keys:
        return {**request, "sni": found.keys["sni"]}
    host = request.get("host")
    if found.sends_sni is None or host is None:
        return request
    return {**request, "sni": (_name(host), host[1])}


def _name(host: tuple[object, FilePosition]) -> str:
    try:
        return dns_name(host[0])
    except ValueError as error:
        raise DirectiveError(f"is sent in the TLS handshake (`enable_sni`): {error}", host[1]) from None


class VirtualServers:
    """Adds the virtual servers of one file to a configuration, with the outcomes of their lines."""

    def __init__(self, tree: TreeBuilder, ledger: Ledger) -> None:
        self._tree = tree
        self._ledger = ledger
        self._unread = ledger.refused_lines()
        self._given: list[Directive] = []
        self._groups: dict[str, Directive] = {}
        self._used: set[str] = set()
        self._taken: set[Endpoint] = set()
        self._names: set[str] = set()

    @property
    def found(self) -> bool:
        """Return whether the kernel forwards any of them."""
        return bool(self._taken)

    def take(self, given: Directive) -> None:
        """Take one virtual server, whose group may follow later."""
        self._given.append(given)

    def take_group(self, given: Directive) -> None:
        """Take a `virtual_server_group`."""
        name = only(given).text
        if name in self._groups:
            raise DirectiveError(f"there is a virtual_server_group {shown(name)} already", given.place)
        self._groups[name] = given

    def finish(self) -> None:
        """Add the virtual servers, once all groups are read."""
        for each in self._given:
            self._finish(each)
        for name, group in self._groups.items():
            if name not in self._used:
                self._ledger.leave_out(group.places, "no translated `virtual_server group` uses it")

    def _finish(self, given: Directive) -> None:
        """Add one virtual server, or refuse it as a whole."""
        draft = Ledger()
        with faults_in(draft):
            group = group_of(given, self._groups)
            for each in (given, group) if group else (given,):
                self._refuse_unread(each)
            self._put(virtual_server(given, draft, self._groups))
        fault = next((each for each in draft.outcomes if each.outcome is Outcome.REFUSED), None)
        if fault is None:
            self._ledger.adopt(draft)
        else:
            self._ledger.refuse(given.place, _why(given, fault))
            belongs = f"belongs to `{given.keyword}`, line {given.place.line}, and is left out with it"
            self._ledger.leave_out(given.places, belongs, head=given.place)

    def _refuse_unread(self, given: Directive) -> None:
        """Refuse a block with an unreadable line, which may be what protects it."""
        lines: dict[str | None, list[int]] = {}
        for each in given.places:
            lines.setdefault(each.source, []).append(each.line)
        for source, own in lines.items():
            unread = self._unread.get(source, [])
            at = bisect_left(unread, min(own))
            if at < len(unread) and unread[at] <= max(own):
                raise DirectiveError(f"is left out because its line {unread[at]} cannot be read", given.place)

    def _put(self, server: VirtualServer) -> None:
        if not self._taken.isdisjoint(server.addresses):
            raise DirectiveError(
                "there is a virtual_server of this address and port already", server.head.place
            )
        servers = {each.address: each for each in _counting(server)}
        if not servers:
            server.ledger.change(server.head.place, _NOBODY)
            server.ledger.leave_out(server.head.places, "belongs to a virtual_server without servers")
            return
        checks = {key: check_of(each, server) for key, each in servers.items()}
        if server.ledger.refusals:
            return
        place = server.head.place
        is_group = server.head.values[0].text == GROUP
        own = server.head.values[1].text if is_group else f"{server.address.host}-{server.address.port}"
        name = own_name(own, self._names)
        self._names.add(name)
        self._used |= {own} if is_group else set()
        self._taken.update(server.addresses)
        group = "ingress" if any(each.port in INGRESS_PORTS for each in server.addresses) else "api"
        self._tree.graft(("pools", name), pool(server, servers, checks).root, place)
        self._tree.graft((group, "frontends", name), frontend(server, pool=name).root, place)


def _counting(server: VirtualServer) -> Iterator[RealServer]:
    """Yield the servers except those that keepalived leaves out itself."""
    found: set[Endpoint] = set()
    for each in server.servers:
        if (":" in each.address.host) != (":" in server.address.host):
            reason = "is left out, as in keepalived: its address is of the other version of IP"
        elif each.address in found:
            reason = "is left out, as in keepalived: the same server is listed above"
        else:
            found.add(each.address)
            yield each
            continue
        server.ledger.change(each.head.place, reason)
        server.ledger.leave_out(each.head.places, f"belongs to `real_server`, line {each.head.place.line}")


def _why(given: Directive, fault: LineOutcome) -> str:
    """Return why a block is refused, naming its refused lines."""
    reason = fault.reason or ""
    place = fault.place
    inner = next((each for each in _within(given) if _line(each) == (place.source, place.line)), None)
    if inner is None:
        return reason
    return f"is left out because of its `{inner.keyword}`, line {place.line}: {reason}"


def _within(given: Directive) -> Iterator[Directive]:
    for each in given.within:
        yield each
        yield from _within(each)


def _line(given: Directive) -> tuple[str | None, int]:
    return given.place.source, given.place.line
