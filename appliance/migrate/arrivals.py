"""Sessions of other nodes: prepared with what they send, and given to workers once they are committed."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import gevent
from gevent import Greenlet, socket, ssl
from structlog.typing import FilteringBoundLogger

from appliance.core.migration.batches import TakenBatches
from appliance.core.migration.renewal import arrived
from appliance.migrate import tcp_repair
from appliance.migrate.connections import Connections, address_of, of_states, restored
from appliance.migrate.held_packets import HeldPackets
from appliance.migrate.link import Link, LinkError, accepted, listener
from appliance.migrate.local_workers import WorkerOffer
from appliance.migrate.owners import Owners
from appliance.model.paths import Paths
from appliance.net.control.connection_slots import ConnectionSlots
from appliance.net.control.control_client import ControlUnavailable
from appliance.net.loop.turns import wait_while
from appliance.net.nftables.nftables import NftablesError
from appliance.wire import literal
from appliance.wire.lines.control import ControlError
from appliance.wire.session_migration import Ask, Commit, Migrating, MigrationError, Offer, Prepared, Settled

MOST_LINKS: Final = 256
"""Connections at a time: one for each worker of other nodes, and those of strangers."""

_AT_ONCE: Final = 20
"""Sockets made between two turns of others."""

_IDLE: Final = 30.0
_PAUSE: Final = 0.5
_COMMITTED_WITHIN: Final = 5.0


@dataclass(slots=True)
class _Prepared:
    """A batch that was offered. `made` has the sessions with sockets here, by their positions in it."""

    batch: bytes
    sessions: tuple[Migrating, ...]
    made: dict[int, tuple[Migrating, Connections]] = field(default_factory=dict)
    offer: WorkerOffer | None = None

    def drop(self) -> None:
        """Close the sockets: the other node continues with the sessions."""
        if self.offer is not None:
            self.offer.close()
        for _, each in self.made.values():
            each.close_silently()
        self.made.clear()


class Arrivals:
    """The server for other nodes. The constructor raises OSError if the port is taken.

    `refusal` returns why this node takes no sessions of an address, "" if it does. `on_lost` is called with
    an address, how many of its sessions are lost, and why.
    """

    def __init__(  # noqa: PLR0913  # each is a neighbour of its own
        self,
        paths: Paths,
        held: HeldPackets,
        owners: Owners,
        *,
        port: int,
        tls: ssl.SSLContext,
        refusal: Callable[[str], str],
        on_taken: Callable[[int], None],
        on_lost: Callable[[str, int, str], None],
        log: FilteringBoundLogger,
    ) -> None:
        self.drops: Counter[str] = Counter()
        self._paths, self._held, self._owners = paths, held, owners
        self._tls, self._refusal, self._log = tls, refusal, log
        self._on_taken, self._on_lost = on_taken, on_lost
        self._batches = TakenBatches()
        self._committing = 0
        self._places: ConnectionSlots[Greenlet] = ConnectionSlots()
        self._listener = listener(port)
        self._loop = gevent.spawn(self._accept)

    def link_fault(self, on_fault: Callable[[BaseException | None], None]) -> None:
        """Have `on_fault` called with a bug that has ended the accepting."""
        self._loop.link_exception(lambda ended: on_fault(ended.exception))

    def close(self) -> None:
        """Close everything when what is committed is with workers; prepared sessions are dropped."""
        self._loop.kill()
        self._listener.close()
        wait_while(lambda: self._committing, within=_COMMITTED_WITHIN)
        gevent.killall(self._places.holders())

    def _accept(self) -> None:
        while True:
            try:
                plain, peer = self._listener.accept()
            except OSError as error:
                self._log.error("accept-paused", error=error.strerror or str(error))  # no bug
                gevent.sleep(_PAUSE)
                continue
            if len(self._places) >= MOST_LINKS - 1 and (leaver := self._places.give_way()) is not None:
                leaver.kill(block=False)  # it has not shown its certificate yet
            node = str(peer[0]).partition("%")[0]
            serving = gevent.spawn(self._serve, plain, node)
            self._places.enter(serving, literal.packed_peer(node))
            serving.rawlink(self._places.leave)
            serving.rawlink(lambda _, plain=plain: plain.close())

    def _serve(self, plain: socket.socket, node: str) -> None:
        try:
            link = accepted(plain, self._tls)
        except (LinkError, MigrationError) as error:
            self.drops[str(error)] += 1
            if self.drops[str(error)] == 1:
                self._log.warning("node-refused", node=node, reason=str(error))
            return
        self._places.work(gevent.getcurrent())
        try:
            while True:
                message = link.receive(begins_within=_IDLE)
                if isinstance(message, Offer):
                    self._serve_batch(link, message, node)
                elif isinstance(message, Ask):
                    link.send(Settled(taken=self._batches.ask(message.batch)))
                else:
                    raise MigrationError(f"{type(message).__name__} is not expected now")  # noqa: TRY301  # one way out
        except LinkError:
            pass  # it has gone, or has nothing more
        except MigrationError as error:
            self._log.warning("node-refused", node=node, reason=str(error))
        finally:
            link.close()

    def _serve_batch(self, link: Link, offer: Offer, node: str) -> None:
        """Prepare a batch, and commit it if the next message is a commit; else the other node has it."""
        batch = _Prepared(offer.batch, tuple(arrived(each, node) for each in offer.sessions))
        try:
            link.send(Prepared(refused=self._prepare(batch, offer.program)))
            message = link.receive()
            if not isinstance(message, Commit):
                raise MigrationError("an offer without a commit")
            self._committing += 1
            try:
                link.send(Settled(taken=self._commit(batch, message)))
            finally:
                self._committing -= 1
        finally:
            batch.drop()

    def _prepare(self, batch: _Prepared, program: str) -> tuple[str, ...]:
        """Make the sockets of a batch, and find a worker; return for each session why not, or ""."""
        reasons = [""] * len(batch.sessions)
        for place, each in enumerate(batch.sessions):
            reasons[place] = self._refusal(address_of(each))
            if reasons[place]:
                continue
            try:
                batch.made[place] = each, restored(each)
            except OSError as error:
                reasons[place] = error.strerror or str(error)
            if place % _AT_ONCE == _AT_ONCE - 1:
                gevent.sleep(0)
        mine = [each for _, each in batch.made.values()]
        try:
            batch.offer = WorkerOffer(
                self._paths,
                program,
                [each.session for each in mine],
                [one.fileno() for each in mine for one in each.sockets],
            )
        except (ControlUnavailable, ControlError) as error:
            return tuple(each or str(error) for each in reasons)
        for place, why in zip(batch.made, batch.offer.refused, strict=True):
            reasons[place] = why
        return tuple(reasons)

    def _commit(self, batch: _Prepared, commit: Commit) -> bool:
        """Make the sessions of a batch ours; return whether they are."""
        places = commit.places
        if batch.offer is None or not batch.made.keys() >= set(places) or not self._batches.take(batch.batch):
            return False
        ours, offered = [batch.made[each] for each in places], list(batch.made)
        ends = [one for each, _ in ours for one in of_states(each)]
        if not self._owners.came(ends):
            self._batches.failed(batch.batch)
            return False
        self._release(ours, ends)
        try:
            batch.offer.take([offered.index(each) for each in places])
        except (ControlUnavailable, ControlError) as error:
            self._log.error("sessions-lost", sessions=len(places), reason=str(error))  # no bug
            # The other node counts them as given: it has done its part.
            for address, number in Counter(address_of(each) for each, _ in ours).items():
                self._on_lost(address, number, str(error))
        else:
            self._on_taken(len(places))
            for _, taken in ours:
                taken.reset_if_lost(wanted=False)
        for place in set(places):
            batch.made.pop(place)[1].close()
        return True

    def _release(
        self, ours: Sequence[tuple[Migrating, Connections]], ends: list[tuple[str, int, str, int]]
    ) -> None:
        """Let connections send and receive."""
        try:
            self._held.let_go(ends)  # held after they had left this node
        except NftablesError as error:
            self._log.error("session-move-failed", reason=str(error))  # no bug
        for migrating, each in ours:
            each.reset_if_lost(wanted=True)
            states = (migrating.client, migrating.server)
            for one, state in zip(each.sockets, states, strict=False):
                if state is not None:
                    try:
                        tcp_repair.release(one, state)
                    except OSError as error:  # it was reset: its worker reads that
                        self._log.debug("session-reset-on-the-way", reason=error.strerror or str(error))
