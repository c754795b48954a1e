"""Exchanges reports between nodes: sent to all that may serve an address, accepted if signed with the key."""

import contextlib
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from secrets import token_bytes
from typing import Final

import gevent
from gevent import Greenlet
from gevent import socket as gevent_socket
from structlog.typing import FilteringBoundLogger

from appliance.core.linger.nodes import SILENT, Nodes, put_last
from appliance.core.linger.silent_nodes import Listening
from appliance.linger.address_sets import AddressSet
from appliance.linger.shared_address_reports import SharedReports
from appliance.net.packets import interface_mac
from appliance.net.packets.report_sockets import HOP_LIMIT, Datagram, ReportReceiver, ReportSender
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
    decode,
    encode,
)

INTERVAL: Final = 0.3
"""Seconds between two reports: a node that is silent for twenty times as long counts as gone."""

ANSWERED: Final = 0.05
"""Seconds between two reports while a new node waits for ours."""


class Reports:
    """The sockets at one port.

    The first of `secrets` signs, all are accepted. `on_news` is called when a report was accepted, or waits
    for our answer, `on_node` with another node's report about itself. `macs` are our own, by the index of
    their interface. The constructor raises OSError if the port is taken.
    """

    def __init__(
        self,
        address_sets: Iterable[AddressSet],
        *,
        port: int,
        secrets: Sequence[bytes],
        nodes: Nodes,
        on_news: Callable[[], None],
        log: FilteringBoundLogger,
        shared: SharedReports | None = None,
    ) -> None:
        self.drops: Counter[ReportDrop] = Counter()
        self.macs: dict[int, bytes] = {}
        self._talking: dict[tuple[str, int], float] = {}
        self._sets = tuple(address_sets)
        self._port = port
        self._secrets = secrets
        self._nodes = nodes
        self._on_news = on_news
        self.on_node: Callable[[str, NodeFacts], None] = lambda _node, _facts: None
        self._log = log
        self._shared = shared
        self._session = token_bytes(SESSION)
        nodes.begin_session()
        self._sequence = 0
        self._awaited = False
        self._refused: dict[tuple[str, str | None], str] = {}
        self._disbelieved: dict[tuple[str, int], tuple[ReportDrop, float]] = {}
        self._receivers: dict[int, ReportReceiver] = {}
        self._greenlets: list[Greenlet] = []
        try:
            families = {each.family for each in self._sets}
            for family in sorted(families.union(each.family for each in (shared.sets if shared else ()))):
                self._receivers[family] = ReportReceiver(family, port)
        except OSError:
            self.close()
            raise
        self._greenlets = [gevent.spawn(self._follow, each) for each in self._receivers.values()]

    def link_fault(self, on_fault: Callable[[BaseException | None], None]) -> None:
        """Have `on_fault` called with a bug that has ended the reading."""
        for each in self._greenlets:
            each.link_exception(lambda ended: on_fault(ended.exception))

    @property
    def awaited(self) -> bool:
        """Whether a new node waits for our next report, to be believed or to believe it."""
        return self._awaited or (self._shared is not None and self._shared.awaited)

    def send(self, reported: Callable[[str], ReportedAddress | None], *, has: Callable[[str], bool]) -> None:
        """Send the other nodes what `reported` returns for each of our addresses; None is left out.

        `has` is whether this node has a shared address now.
        """
        self._awaited = False
        if self._shared is not None:
            self._shared.send(has)
        for place in self._sets:
            addresses = tuple(each for address in place.routers if (each := reported(address)) is not None)
            try:
                index = socket.if_nametoindex(place.interface)
                mac = interface_mac.of(place.interface)
                self._receivers[place.family].join(index)
            except OSError as error:
                self._talking.pop((place.interface, place.family), None)
                self._note(place.interface, None, error)
                continue
            self.macs[index] = mac
            sent = [
                self._send(place, index, mac, peer, addresses)
                for peer in (*place.peers, *([None] if place.multicast else []))
            ]
            if any(sent):
                self._talking.setdefault((place.interface, place.family), time.monotonic())
            else:
                self._talking.pop((place.interface, place.family), None)

    def send_facts(self, facts: NodeFacts) -> None:
        """Report the facts of this node to the other nodes from which it receives."""
        for place in self._sets:
            with contextlib.suppress(OSError):  # an interface that is gone: `send` logs it
                index = socket.if_nametoindex(place.interface)
                for each in self._nodes.neighbours(index, family=place.family, now=time.monotonic()):
                    self._send_facts(place, index, each.node, facts)
        if self._shared is not None:
            self._shared.send_facts(facts)

    def refused(self, now: float) -> dict[str, ReportDrop]:
        """Return why recent reports of other nodes were not accepted, by their source."""
        return {node: reason for (node, _), (reason, at) in self._disbelieved.items() if now - at < SILENT}

    def talking(self) -> dict[str, float]:
        """Return since when reports of each address are exchanged."""
        since = ((place, self._talking.get((place.interface, place.family))) for place in self._sets)
        return {address: at for place, at in since if at is not None for address in place.routers}

    def listening(self, place: AddressSet, index: int, now: float) -> Listening | None:
        """Return how this node takes part at a place, on the interface `index`; None if it cannot send."""
        since = self._talking.get((place.interface, place.family))
        if since is None:
            return None
        return Listening(
            since=since,
            macs=self.macs.values(),
            peers=place.peers,
            refused={
                node: reason
                for (node, where), (reason, at) in self._disbelieved.items()
                if where == index and (":" in node) == (place.family == 6) and now - at < SILENT
            },
        )

    def close(self) -> None:
        """Close the sockets; harmless when repeated."""
        gevent.killall(self._greenlets)
        if self._shared is not None:
            self._shared.close()
        for each in self._receivers.values():
            each.close()

    def _send(
        self,
        place: AddressSet,
        index: int,
        mac: bytes,
        peer: str | None,
        addresses: tuple[ReportedAddress, ...],
    ) -> bool:
        self._sequence += 1
        answered = self._nodes.answered(index, family=place.family, now=time.monotonic())
        report = LingerReport(
            mac=mac,
            session=self._session,
            sequence=self._sequence,
            challenge=self._nodes.challenge,
            addresses=addresses[: MOST_ADDRESSES[place.family]],
            answered=answered[:MOST_ANSWERED],
        )
        try:
            sender = ReportSender(place.family, self._port, interface=index, peer=peer)
            sender.send(
                encode(
                    report,
                    family=place.family,
                    source=sender.source,
                    secret=self._secrets[0],
                )
            )
        except OSError as error:
            self._note(place.interface, peer, error)
            return False
        self._refused.pop((place.interface, peer), None)
        return True

    def _send_facts(self, place: AddressSet, index: int, peer: str, facts: NodeFacts) -> None:
        self._sequence += 1
        reported = ReportedNode(session=self._session, sequence=self._sequence, facts=facts)
        sender = ReportSender(place.family, self._port, interface=index, peer=peer)
        sender.send(linger_node.encode(reported, source=sender.source, secret=self._secrets[0]))

    def _follow(self, receiver: ReportReceiver) -> None:
        while True:
            gevent_socket.wait_read(receiver.fileno())
            for each in receiver.receive():
                try:
                    self._take(each)
                except LingerReportError as error:
                    self._dropped(each, error.reason)
            gevent.sleep(0)

    def _take(self, datagram: Datagram) -> None:
        if datagram.hop_limit != HOP_LIMIT:
            raise LingerReportError(ReportDrop.HOP_LIMIT)
        if self._shared is not None and linger_strays.is_one(datagram.data):
            self._shared.take_strays(datagram)
            return
        if linger_node.is_one(datagram.data):
            self._take_node(datagram)
            return
        report = decode(datagram.data, source=datagram.source, secrets=self._secrets)
        if report.shared:
            self._take_shared(datagram.source, report)
            return
        source, interface = datagram.source, datagram.interface
        self._awaited |= self._nodes.is_new(source, report.session, interface=interface)
        reason = self._nodes.receive(source, report, interface=interface, now=time.monotonic())
        if reason is None or self._awaited:
            self._on_news()
        if reason is not None:
            raise LingerReportError(reason)

    def _take_node(self, datagram: Datagram) -> None:
        """Process a node's report about itself, which is numbered with its reports of either kind."""
        reported = linger_node.decode(datagram.data, source=datagram.source, secrets=self._secrets)
        reason = self._nodes.follow(
            datagram.source, reported.session, reported.sequence, interface=datagram.interface
        )
        if reason is ReportDrop.UNPROVED and self._shared is not None:
            reason = self._shared.follow(datagram.source, reported.session, reported.sequence)
        if reason is not None:
            raise LingerReportError(reason)
        self.on_node(datagram.source, reported.facts)

    def _take_shared(self, source: str, report: LingerReport) -> None:
        """Process a report of shared addresses; a node that has none of them leaves it alone."""
        news = True
        try:
            news = self._shared is not None and self._shared.take(source, report)
        finally:
            if news:
                self._on_news()

    def _dropped(self, datagram: Datagram, reason: ReportDrop) -> None:
        self.drops[reason] += 1
        put_last(self._disbelieved, (datagram.source, datagram.interface), (reason, time.monotonic()))
        # The first report of each run of a node is not believed.
        if self.drops[reason] == 1 and reason is not ReportDrop.UNPROVED:
            self._log.warning("linger-drop", reason=reason.value, node=datagram.source)

    def _note(self, interface: str, peer: str | None, error: OSError) -> None:
        why = error.strerror or str(error)
        if self._refused.get((interface, peer)) != why:
            self._refused[interface, peer] = why
            self._log.warning("linger-not-told", interface=interface, node=peer, reason=why)
