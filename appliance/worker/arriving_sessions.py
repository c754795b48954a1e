"""Takes over sessions of draining workers: a worker holds what it is offered until it may take it."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from appliance.core.balancing.frontend_state import FrontendState
from appliance.model.worker_phases import WorkerPhase
from appliance.net.control.control_server import Call, Caller, Handler
from appliance.net.listening.bind_addresses import Address, same_or_covers
from appliance.wire.lines import moving_sessions
from appliance.wire.lines.control import Answer, bad, good
from appliance.wire.lines.moving_sessions import NO_ROOM, MovingSession, Offered, descriptors_of
from appliance.wire.lines.worker_arguments import InheritedListener
from appliance.worker.relay import tcp
from appliance.worker.relay.backend import Backend
from appliance.worker.relay.session import moving
from appliance.worker.worker import Worker


class NoPlaceError(Exception):
    """Neither the frontend nor one that replaces it is served here, or its pool is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivalPlaces:
    """The frontends and pools of one worker, by name, and the addresses that it listens on."""

    frontends: Mapping[str, FrontendState]
    backends: Mapping[str, Backend]
    listeners: Sequence[InheritedListener]

    def of(self, session: MovingSession, client: int) -> tuple[FrontendState, Backend]:
        """Return where a session continues; `client` is a descriptor of its client. Raises NoPlaceError."""
        frontend = self.frontends.get(session.frontend) or self._accepting(client)
        if frontend is None:
            raise NoPlaceError(f"no frontend {session.frontend}")
        backend = self.backends.get(session.pool) or self._renamed(session, frontend)
        if backend is None:
            raise NoPlaceError(f"no pool {session.pool}")
        return frontend, backend

    def _accepting(self, client: int) -> FrontendState | None:
        host, port = tcp.local_address(client)
        local = Address(host.removeprefix("::ffff:"), port)  # IPv4 on an IPv6 socket (RFC 4291 2.5.5.2)
        found = [each for each in self.listeners if same_or_covers(Address(each.host, each.port), local)]
        found.sort(key=lambda each: each.host != local.host)  # the kernel prefers it to a wildcard
        relaying = (self.frontends[each.frontend] for each in found)
        return next((each for each in relaying if each.config.pool is not None), None)

    def _renamed(self, session: MovingSession, frontend: FrontendState) -> Backend | None:
        named = (self.backends.get(each) for each in frontend.config.pools)
        backends, member = [each for each in named if each is not None], session.member
        if member is None:
            # A session that waits in a queue takes any server, but not one of a pool for other clients.
            return backends[0] if len(frontend.config.pools) == 1 and backends else None
        place = (member.name, member.host, member.port)
        return next((each for each in backends if place in _places(each)), None)


def _places(backend: Backend) -> set[tuple[str, str, int]]:
    return {(each.name, each.host, each.port) for each in backend.pool.config.servers}


class _Held:
    """An offered session, copies of its descriptors, and its future place."""

    def __init__(self, session: MovingSession, descriptors: list[int]) -> None:
        self.session = session
        self.descriptors = descriptors
        self.place: tuple[FrontendState, Backend] | None = None

    def drop(self) -> None:
        """Close the copies: the other process continues with the session."""
        self.place = None
        while self.descriptors:
            os.close(self.descriptors.pop())


class ArrivingSessions:
    """The commands `offer` and `take` of one worker."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._places = ArrivalPlaces(
            frontends=worker.settings.frontends,
            backends=worker.settings.backends,
            listeners=worker.arguments.listeners,
        )
        self._offers: dict[int, list[_Held]] = {}

    def handlers(self) -> Mapping[str, Handler]:
        """Return the commands by their names."""
        return {"offer": self._offer, "take": self._take}

    def _offer(self, call: Call) -> Answer:
        """Hold a batch; an earlier one over this connection is dropped."""
        if self._worker.phase is not WorkerPhase.ACCEPTING:
            return bad("this worker does not accept")
        sessions = moving_sessions.offer(call.question.values).sessions
        if sum(map(descriptors_of, sessions)) != len(call.descriptors):
            return bad(f"{len(call.descriptors)} descriptors do not fit the sessions of the offer")
        left = iter(call.keep())
        held = [_Held(each, [next(left) for _ in range(descriptors_of(each))]) for each in sessions]
        self._expect(call.caller, held)
        return good(**moving_sessions.values(Offered(refused=self._find_places(held))))

    def _take(self, call: Call) -> Answer:
        """Continue with the named sessions of the batch, and drop the others."""
        places = frozenset(moving_sessions.taken(call.question.values).places)
        offered = self._offers.get(id(call.caller), [])
        held = offered[:]
        offered.clear()
        if not places <= {number for number, each in enumerate(held) if each.place is not None}:
            _drop(held)
            return bad("take: not all of these were offered")
        self._worker.ids.forget_ended(self._worker.traffic.live)
        for number, each in enumerate(held):
            if number in places and each.place is not None:
                self._arrive(each.session, *each.place, each.descriptors)
            else:
                each.drop()
        self._worker.acceptors.pause_full()
        return good()

    def _arrive(
        self, session: MovingSession, frontend: FrontendState, backend: Backend, descriptors: Sequence[int]
    ) -> None:
        arrived = moving.arrive(self._worker.traffic, frontend, backend, session, descriptors)
        self._worker.ids.keep(arrived.number, session.id)

    def _find_places(self, held: Sequence[_Held]) -> tuple[str, ...]:
        """Find the places of sessions; return why each has none, or "". Those without a place are dropped."""
        traffic = self._worker.traffic
        waiting = sum(each.place is not None for offer in self._offers.values() for each in offer)
        room = traffic.limit - len(traffic.live) - waiting
        reasons = list[str]()
        for each in held:
            reasons.append(self._find_place(each) if room > 0 else NO_ROOM)
            if reasons[-1]:
                each.drop()
            else:
                room -= 1
        return tuple(reasons)

    def _find_place(self, held: _Held) -> str:
        try:
            held.place = self._places.of(held.session, held.descriptors[0])
        except NoPlaceError as error:
            return str(error)
        except OSError as error:
            return error.strerror or str(error)
        return ""

    def _expect(self, caller: Caller, held: list[_Held]) -> None:
        """Note what a caller offers, in place of an earlier offer; it is dropped when the caller is gone."""
        key = id(caller)
        if key in self._offers:
            _drop(self._offers[key])
        else:
            caller.on_close.append(lambda: _drop(self._offers.pop(key)))
        self._offers[key] = held


def _drop(held: Sequence[_Held]) -> None:
    for each in held:
        each.drop()
