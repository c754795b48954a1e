"""Exchanges reports of shared addresses with the nodes in `linger.peers`, and what is found out of strays.

They arrive at the sockets of `reports`, and are signed and numbered like its reports. A node's view of the
others is separate from that of virtual IPs: the same node may report both, from the same address.
"""

import socket
import time
from collections.abc import Callable, Iterable, Sequence
from secrets import token_bytes
from typing import Final

import gevent
from structlog.typing import FilteringBoundLogger

from appliance.core.linger.nodes import Nodes
from appliance.core.linger.shared_address_nodes import DOUBTFUL
from appliance.linger.address_sets import SharedSet
from appliance.net.netlink.netlink import Requests
from appliance.net.netlink.route_lookup import Way, way
from appliance.net.packets import interface_mac
from appliance.net.packets.report_sockets import Datagram, ReportSender
from appliance.wire import linger_node, linger_strays
from appliance.wire.linger_node import NodeFacts, ReportedNode
from appliance.wire.linger_report import (
    MOST_ADDRESSES,
    MOST_ANSWERED,
    SESSION,
    LingerReport,
    LingerReportError,
    ReportDrop,
    ReportedAddress,
    encode,
)
from appliance.wire.linger_strays import Ends, ReportedStrays

ANYWHERE: Final = 0
"""The interface of all these nodes in `Nodes`: their addresses tell them apart."""

_FAREWELLS: Final = 3
_FAREWELL: Final = 0.15  # seconds for one
_LOOKED: Final = 1.0  # seconds between two looks at the ways to the peers


class SharedReports:
    """The reports of shared addresses. `on_strays` gets what another node has found out of strays.

    `macs` are this node's own by peer, `routed` are the peers that only a router reaches.
    """

    def __init__(
        self,
        sets: Iterable[SharedSet],
        *,
        port: int,
        secrets: Sequence[bytes],
        nodes: Nodes,
        on_strays: Callable[[str, ReportedStrays], None],
        log: FilteringBoundLogger,
    ) -> None:
        self.sets = tuple(sets)
        self.macs: dict[str, bytes] = {}
        self.awaited = False
        self._port = port
        self._secrets = secrets
        self._nodes = nodes
        self._on_strays = on_strays
        self._log = log
        self._session = token_bytes(SESSION)
        nodes.begin_session()
        self._sequence = 0
        self._since: dict[int, float] = {}
        self._refused: dict[str, str] = {}
        self._said: dict[str, tuple[object, float]] = {}
        self._requests = Requests()
        self._ways: dict[str, Way] = {}
        self._looked_at = float("-inf")

    def close(self) -> None:
        """Close the sockets; harmless when repeated."""
        self._requests.close()

    def since(self, family: int) -> float | None:
        """Return since when reports of a family are sent, None if they cannot be."""
        return self._since.get(family)

    def peers(self, shared: SharedSet) -> tuple[str, ...]:
        """Return the other nodes of a set, without those that cannot be on a segment with this one."""
        self._look()
        return tuple(each for each in shared.peers if not self._is_own(each))

    @property
    def routed(self) -> tuple[str, ...]:
        """The peers to which packets cannot be forwarded, as a router is between."""
        return tuple(sorted(peer for peer, each in self._ways.items() if each.routed))

    def interface(self, peer: str) -> int | None:
        """Return the index of the interface towards a peer, None if it is unreachable."""
        found = self._ways.get(peer)
        return None if found is None else found.interface

    def send(self, has: Callable[[str], bool]) -> None:
        """Send each peer the shared addresses of its family; `has` is whether this node has one now."""
        self.awaited = False
        self._look()
        for shared in self.sets:
            addresses = tuple(
                ReportedAddress(address=each, active=has(each), left=0.0, connections=0)
                for each in shared.addresses
            )[: MOST_ADDRESSES[shared.family]]
            sent = [self._report(shared, peer, addresses) for peer in self.peers(shared)]
            if any(sent) or not sent:
                self._since.setdefault(shared.family, time.monotonic())
            else:
                self._since.pop(shared.family, None)

    def leave(self) -> None:
        """Report, more than once, that this node has no shared addresses: it gets no packets of others then.

        Return when the others have taken that in: without rules the kernel would reset what they send.
        """
        for _ in range(_FAREWELLS):
            for shared in self.sets:
                for peer in self.peers(shared):
                    self._report(shared, peer, ())
            gevent.sleep(_FAREWELL)

    def send_strays(
        self, shared: SharedSet, peer: str, found: Sequence[Ends], denied: Sequence[Ends]
    ) -> None:
        """Report to a peer which connections of packets that it forwarded are here, and which are not."""
        for here, away in linger_strays.shares(found, denied, family=shared.family):

            def encoded(source: str, here: Sequence[Ends] = here, away: Sequence[Ends] = away) -> bytes:
                reported = ReportedStrays(
                    session=self._session, sequence=self._sequence, found=tuple(here), denied=tuple(away)
                )
                return linger_strays.encode(
                    reported, family=shared.family, source=source, secret=self._secrets[0]
                )

            self._send(shared, peer, encoded)

    def send_facts(self, facts: NodeFacts) -> None:
        """Report the facts of this node to the other nodes from which it receives."""
        for shared in self.sets:
            heard = {each.node for each in self._nodes.sharing(shared.family, time.monotonic())}
            for peer in self.peers(shared):
                if peer in heard:

                    def encoded(source: str) -> bytes:
                        reported = ReportedNode(session=self._session, sequence=self._sequence, facts=facts)
                        return linger_node.encode(reported, source=source, secret=self._secrets[0])

                    self._send(shared, peer, encoded)

    def follow(self, source: str, session: bytes, sequence: int) -> ReportDrop | None:
        """Process the head of another datagram of a node; return why it is not accepted, None if it is."""
        return self._nodes.follow(source, session, sequence, interface=ANYWHERE)

    def take(self, source: str, report: LingerReport) -> bool:
        """Process a report that has the right key; raises LingerReportError if it is not accepted.

        Return whether it says anything else than the one before, or comes after some silence.
        """
        if not any(source in each.peers for each in self.sets):
            return False
        self.awaited |= self._nodes.is_new(source, report.session, interface=ANYWHERE)
        reason = self._nodes.receive(source, report, interface=ANYWHERE, now=time.monotonic())
        if reason is not None:
            raise LingerReportError(reason)
        now, said = time.monotonic(), (report.mac, report.session, report.addresses, report.answered)
        (before, at), self._said[source] = self._said.get(source, (None, now)), (said, now)
        return said != before or now - at > DOUBTFUL

    def take_strays(self, datagram: Datagram) -> None:
        """Process a node's report of strays; raises LingerReportError if it is not accepted."""
        reported = linger_strays.decode(datagram.data, source=datagram.source, secrets=self._secrets)
        reason = self.follow(datagram.source, reported.session, reported.sequence)
        if reason is not None:
            raise LingerReportError(reason)
        self._on_strays(datagram.source, reported)

    def _report(self, shared: SharedSet, peer: str, addresses: tuple[ReportedAddress, ...]) -> bool:
        def encoded(source: str) -> bytes:
            now = time.monotonic()
            answered = self._nodes.answered(ANYWHERE, family=shared.family, now=now)
            report = LingerReport(
                mac=self.macs[peer],
                session=self._session,
                sequence=self._sequence,
                challenge=self._nodes.challenge,
                addresses=addresses,
                answered=answered[:MOST_ANSWERED],
                shared=True,
            )
            return encode(report, family=shared.family, source=source, secret=self._secrets[0])

        return self._send(shared, peer, encoded)

    def _send(self, shared: SharedSet, peer: str, encoded: Callable[[str], bytes]) -> bool:
        self._sequence += 1
        try:
            index = self._ways[peer].interface
            self.macs[peer] = interface_mac.of(socket.if_indextoname(index))
            sender = ReportSender(shared.family, self._port, interface=index, peer=peer)
            sender.send(encoded(sender.source))
        except (OSError, KeyError) as error:
            why = "there is no route to it" if isinstance(error, KeyError) else error.strerror or str(error)
            self._note(peer, why)
            return False
        self._refused.pop(peer, None)
        return True

    def _look(self) -> None:
        now = time.monotonic()
        if now - self._looked_at < _LOOKED:
            return
        self._looked_at = now
        found = {peer: way(self._requests, peer) for each in self.sets for peer in each.peers}
        self._ways = {peer: each for peer, each in found.items() if each is not None}

    def _is_own(self, peer: str) -> bool:
        return self.interface(peer) == socket.if_nametoindex("lo")

    def _note(self, peer: str, why: str) -> None:
        if self._refused.get(peer) != why:
            self._refused[peer] = why
            node = next((each.named(peer) for each in self.sets if peer in each.peers), peer)
            self._log.warning("linger-not-told", interface="", node=node, reason=why)
