"""Sessions that leave this node: workers offer them here in batches, and the other node takes them.

A worker holds a batch still while it is offered, and continues with what it does not get rid of. From its
`take` on the sessions are ours alone: until the other node has answered `Commit`, nobody touches them.
"""

import secrets
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from gevent import ssl
from structlog.typing import FilteringBoundLogger

from appliance.core.migration.batches import Having, after_commit
from appliance.core.migration.ruleset import Ends
from appliance.migrate.connections import Connections, is_local, received, require_from
from appliance.migrate.held_packets import HeldPackets
from appliance.migrate.link import Link, LinkError, connect
from appliance.migrate.local_workers import WorkerOffer
from appliance.migrate.owners import Owners
from appliance.migrate.tcp_repair import CannotMove
from appliance.model.paths import Paths
from appliance.net.control.control_client import ControlUnavailable
from appliance.net.control.control_server import Call, Caller, Handler
from appliance.net.loop.turns import wait_while
from appliance.net.nftables.nftables import NftablesError
from appliance.wire.lines import moving_sessions
from appliance.wire.lines.control import Answer, ControlError, bad, good
from appliance.wire.lines.moving_sessions import Offered, descriptors_of
from appliance.wire.session_migration import (
    BATCH_BYTES,
    Ask,
    Commit,
    Migrating,
    MigrationError,
    Offer,
    Prepared,
    Settled,
)

_BATCH: Final = 16  # bytes of its number
BATCH_FULL: Final = "its batch has many bytes already"
_FINISHED_WITHIN: Final = 5.0  # seconds for a batch under way: half of what a stop may take
_NO_ANSWER: Final = "the other node did not answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A node that serves an address: its own address, the interface to it, and its port.

    `shared` is whether this node serves the address too.
    """

    node: str
    interface: str
    port: int
    tls: ssl.SSLContext
    shared: bool = False


class _Batch:
    """One batch under way: what is offered, by its position in the worker's offer."""

    def __init__(self, sessions: Sequence[Connections]) -> None:
        self.number = secrets.token_bytes(_BATCH)
        self.sessions = sessions
        self.held: list[Ends] = []
        self.ends: dict[int, list[Ends]] = {}
        self.offered: list[int] = []
        self.held_at = time.monotonic()  # the worker has stopped them for this offer


class _Way:
    """The way of one worker's sessions of one address: of several nodes each in turn takes a batch."""

    def __init__(self, program: str, address: str, targets: Sequence[Target]) -> None:
        self.program, self.address, self.targets = program, address, targets
        self.target = targets[0]
        self.batch: _Batch | None = None
        self._links: dict[Target, Link] = {}

    @property
    def link(self) -> Link | None:
        """The connection to the node of this turn, None until its first batch."""
        return self._links.get(self.target)

    def turn(self) -> None:
        """Let the next node have its turn."""
        self.target = self.targets[(self.targets.index(self.target) + 1) % len(self.targets)]

    def open(self) -> Link:
        """Return the connection to the other node. Raises LinkError and MigrationError."""
        target = self.target
        if target not in self._links:
            self._links[target] = connect(
                target.node, target.port, interface=target.interface, tls=target.tls
            )
        return self._links[target]

    def close(self) -> None:
        """Close the connection: the other node drops what it has prepared."""
        link = self._links.pop(self.target, None)
        if link is not None:
            link.close()

    def end(self) -> None:
        """Close all connections."""
        while self._links:
            self._links.popitem()[1].close()


class Departures:
    """The commands `offer` and `take` for workers. `targets` has the nodes for each address, none for none.

    `given` counts sessions, `on_lost` is called with an address, how many of its sessions are lost, and why.
    `pauses` are the longest times in seconds for which a batch that was given was held back, by address.
    """

    def __init__(
        self,
        paths: Paths,
        held: HeldPackets,
        owners: Owners,
        *,
        targets: Callable[[str], Sequence[Target]],
        on_lost: Callable[[str, int, str], None],
        log: FilteringBoundLogger,
    ) -> None:
        self.given: Counter[str] = Counter()
        self.pauses: dict[str, float] = {}
        self.log = log
        self._paths, self._held, self._owners, self._targets = paths, held, owners, targets
        self._on_lost = on_lost
        self._ways: dict[int, _Way] = {}
        self._under_way = 0
        self._ends = False

    def handlers(self) -> Mapping[str, Handler]:
        """Return the commands by their names."""
        return {"offer": self._counted(self._offer), "take": self._counted(self._take)}

    def finish(self) -> None:
        """Refuse further offers, and return when all that workers have offered is given or dropped.

        A worker's `take` follows its offer at once, and sessions that are taken are nobody's but ours.
        """
        self._ends = True
        wait_while(
            lambda: self._under_way or any(each.batch is not None for each in self._ways.values()),
            within=_FINISHED_WITHIN,
        )
        for key in list(self._ways):
            self._leave(key)

    def _counted(self, handler: Callable[[Call], Answer]) -> Handler:
        def counted(call: Call) -> Answer:
            self._under_way += 1
            try:
                return handler(call)
            finally:
                self._under_way -= 1

        return counted

    # Offered by a worker

    def _offer(self, call: Call) -> Answer:
        """Have the other node prepare a batch; the worker's earlier one is dropped."""
        if self._ends:
            return bad("the program ends")
        sessions = moving_sessions.offer(call.question.values).sessions
        if sum(map(descriptors_of, sessions)) != len(call.descriptors) or any(
            side.piped for each in sessions for side in (each.client, each.server) if side is not None
        ):
            return bad(f"{len(call.descriptors)} descriptors do not fit the sessions of the offer")
        way = self._way(call.caller, call.question.text("program"), call.question.text("address"))
        if way is None:
            return bad("no other node serves this address")
        self._drop(way)
        way.turn()
        batch = way.batch = _Batch(received(sessions, call.keep()))
        try:
            reasons = self._prepare(way, batch)
        except (LinkError, MigrationError, NftablesError) as error:
            self._drop(way)
            way.close()
            return bad(str(error))
        return good(**moving_sessions.values(Offered(refused=tuple(reasons))))

    def _way(self, caller: Caller, program: str, address: str) -> _Way | None:
        targets = self._targets(address)
        way = self._ways.get(id(caller))
        if way is not None and (way.program, way.address, way.targets) == (program, address, targets):
            return way
        if way is not None:
            self._leave(id(caller))
        if not targets:
            return None
        if way is None:
            caller.on_close.append(lambda: self._leave(id(caller)))
        way = self._ways[id(caller)] = _Way(program, address, targets)
        return way

    def _leave(self, key: int) -> None:
        way = self._ways.pop(key, None)
        if way is not None:
            self._drop(way)
            way.end()

    def _prepare(self, way: _Way, batch: _Batch) -> list[str]:
        """Hold back the packets of a batch, and have it prepared; return for each session why not, or ""."""
        link = way.open()  # before anything is held back
        local = cache(is_local)  # most sessions have the same few servers
        reasons = [
            self._refusal(each, way.address, place, batch, local) for place, each in enumerate(batch.sessions)
        ]
        batch.held = [one for some in batch.ends.values() for one in some]
        if not batch.held:
            return reasons
        self._held.hold(batch.held)
        moved = _states(batch, reasons)
        if moved:
            offer = Offer(batch=batch.number, program=way.program, sessions=tuple(moved))
            answer = link.ask(offer)
            if not isinstance(answer, Prepared) or len(answer.refused) != len(moved):
                raise MigrationError("an answer that does not fit the offer")
            for place, why in zip(batch.offered, answer.refused, strict=True):
                reasons[place] = why
        return reasons

    def _refusal(
        self, each: Connections, address: str, place: int, batch: _Batch, local: Callable[[str], bool]
    ) -> str:
        try:
            require_from(each, address, local)
            batch.ends[place] = each.ends()
        except CannotMove as error:
            return str(error)
        except OSError as error:
            return error.strerror or str(error)
        return ""

    def _drop(self, way: _Way) -> None:
        """End a batch that the worker continues with: everything gets through again."""
        batch, way.batch = way.batch, None
        if batch is None:
            return
        self._let_go(batch.held)
        for each in batch.sessions:
            each.close()
        if batch.offered:
            way.close()  # the other node drops it

    # Taken

    def _take(self, call: Call) -> Answer:
        """Give the named sessions of the batch to the other node; they are the worker's no more."""
        places = moving_sessions.taken(call.question.values).places
        way = self._ways.get(id(call.caller))
        batch = way.batch if way is not None else None
        if way is None or batch is None:
            return bad("take: nothing was offered")
        if not set(places) <= set(batch.offered):
            self._drop(way)
            return bad("take: not all of these were offered")
        if not batch.offered:  # the other node was asked nothing
            self._drop(way)
            return good()
        way.batch = None
        going = [batch.sessions[each] for each in places]
        for each in going:
            each.reset_if_lost(wanted=True)
        ends = [one for place in places for one in batch.ends[place]]
        self._let_go(sorted(set(batch.held) - set(ends)))
        having = self._commit(way, batch, places)
        pause = time.monotonic() - batch.held_at  # if it is the other node's, it goes on there by now
        if having is Having.BACK:
            self._back(way, batch, places)
            self._let_go(ends)  # those that are not back are reset
        else:
            if having is Having.GONE:  # counted before they close: who sees none left reads the whole count
                self.given[way.address] += len(going)
                self.pauses[way.address] = max(pause, self.pauses.get(way.address, 0.0))
            else:
                self._on_lost(way.address, len(going), _NO_ANSWER)
                self.log.error("sessions-lost", sessions=len(going), reason=_NO_ANSWER)
            servers = [one for place in places for one in batch.ends[place][1:]]
            self._forget(going, ends, servers, shared=way.target.shared)
        for each in batch.sessions:
            each.close()
        return good()

    def _commit(self, way: _Way, batch: _Batch, places: Sequence[int]) -> Having:
        commit = Commit(batch=batch.number, places=tuple(batch.offered.index(each) for each in places))
        link = way.link
        if link is None:
            return Having.BACK  # it cannot be committed any more
        run = link.run
        try:
            return after_commit(taken=_settled(link, commit))
        except (LinkError, MigrationError):
            way.close()
        try:
            link = way.open()
            return after_commit(taken=_settled(link, Ask(batch=batch.number)), same_run=link.run == run)
        except (LinkError, MigrationError) as error:
            way.close()
            self.log.warning("session-move-doubtful", node=way.target.node, reason=str(error))
            return after_commit(taken=None)

    def _back(self, way: _Way, batch: _Batch, places: Sequence[int]) -> None:
        """Give sessions that the other node did not take to a worker of this one; it may refuse some."""
        going = [batch.sessions[each] for each in places]
        descriptors = [one.fileno() for each in going for one in each.sockets]
        taken, reason = list[int](), ""
        try:
            offer = WorkerOffer(self._paths, way.program, [each.session for each in going], descriptors)
            fitting = [place for place, why in enumerate(offer.refused) if not why]
            offer.take(fitting)
        except (ControlUnavailable, ControlError) as error:
            reason = str(error)
        else:
            taken, reason = fitting, next(filter(None, offer.refused), "")
        for place in taken:
            going[place].reset_if_lost(wanted=False)
        if lost := len(going) - len(taken):
            self.log.error("sessions-not-back", sessions=lost, reason=reason)
            self._on_lost(way.address, lost, reason)

    def _forget(
        self, going: Sequence[Connections], ends: Sequence[Ends], servers: Sequence[Ends], *, shared: bool
    ) -> None:
        """Leave nothing here of connections that another node has; packets of `shared` ones are forwarded."""
        for each in going:
            each.close_silently()
        try:
            self._held.hold_afterwards(ends)
        except NftablesError as error:
            self.log.error("session-move-failed", reason=str(error))  # noqa: TRY400  # no bug
        self._owners.left(ends, servers=servers)
        if shared:
            self._let_go(ends)

    def _let_go(self, ends: Sequence[Ends]) -> None:
        try:
            self._held.let_go(ends)
        except NftablesError as error:
            self.log.error("session-move-failed", reason=str(error))  # noqa: TRY400  # no bug


def _states(batch: _Batch, reasons: list[str]) -> list[Migrating]:
    """Return the states of what can move, and note for the others why not."""
    moved, size = list[Migrating](), 0
    for place, each in enumerate(batch.sessions):
        if reasons[place]:
            continue
        if size > BATCH_BYTES:
            reasons[place] = BATCH_FULL
            continue
        try:
            state = each.state()
        except CannotMove as error:
            reasons[place] = str(error)
        except OSError as error:
            reasons[place] = error.strerror or str(error)
        else:
            size += state.queued
            batch.offered.append(place)
            moved.append(state)
    return moved


def _settled(link: Link, message: Commit | Ask) -> bool:
    answer = link.ask(message)
    if not isinstance(answer, Settled):
        raise MigrationError("an answer that does not fit a commit")
    return answer.taken
