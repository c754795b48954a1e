"""A worker takes sessions of workers that drain: what it is offered it holds, until it may take it."""

import os
from collections.abc import Mapping, Sequence

from appliance.core.balancing.frontend_state import FrontendState
from appliance.model.worker_phases import WorkerPhase
from appliance.net.control.control_server import Call, Caller, Handler
from appliance.net.data.backend import Backend
from appliance.net.data.session import moving
from appliance.programs.worker.arrival_places import ArrivalPlaces, NoPlaceError
from appliance.programs.worker.worker import Worker
from appliance.wire.lines import moving_sessions
from appliance.wire.lines.control import Answer, bad, good
from appliance.wire.lines.moving_sessions import NO_ROOM, MovingSession, Offered, descriptors_of


class _Held:
    """A session that was offered, the place that it will have, and copies of its descriptors."""

    def __init__(
        self, session: MovingSession, place: tuple[FrontendState, Backend], descriptors: Sequence[int]
    ) -> None:
        self.session = session
        self.frontend, self.backend = place
        self.descriptors = list[int]()
        try:
            for each in descriptors:
                self.descriptors.append(os.dup(each))
        except OSError:
            self.drop()
            raise

    def drop(self) -> None:
        """Close the copies: the other process goes on with it."""
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
        self._offers: dict[int, list[_Held | None]] = {}

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
        self._expect(call.caller)
        held, reasons = list[_Held | None](), list[str]()
        left = iter(call.descriptors)
        for session in sessions:
            own = [next(left) for _ in range(descriptors_of(session))]
            each, reason = self._hold(session, own)
            held.append(each)
            reasons.append(reason)
        self._offers[id(call.caller)] = held
        return good(**moving_sessions.values(Offered(refused=tuple(reasons))))

    def _take(self, call: Call) -> Answer:
        """Go on with those sessions of the batch that are named, and drop the others."""
        places = frozenset(moving_sessions.taken(call.question.values).places)
        held = self._offers.pop(id(call.caller), [])
        if not places <= {place for place, each in enumerate(held) if each is not None}:
            _drop(held)
            return bad("take: not all of these were offered")
        self._worker.ids.forget_ended(self._worker.traffic.live)
        for place, each in enumerate(held):
            if each is None:
                continue
            if place in places:
                self._arrive(each)
            else:
                each.drop()
        self._worker.acceptors.pause_full()
        return good()

    def _arrive(self, held: _Held) -> None:
        worker = self._worker
        arrived = moving.arrive(worker.traffic, held.frontend, held.backend, held.session, held.descriptors)
        worker.ids.keep(arrived.number, held.session.id)

    def _hold(self, session: MovingSession, descriptors: Sequence[int]) -> tuple[_Held | None, str]:
        """Return a session as it is held, or why it has no place here."""
        traffic = self._worker.traffic
        waiting = sum(each is not None for held in self._offers.values() for each in held)
        try:
            held = _Held(session, self._places.of(session, descriptors[0]), descriptors)
        except NoPlaceError as error:
            return None, str(error)
        except OSError as error:
            return None, error.strerror or str(error)
        if len(traffic.live) + waiting >= traffic.limit:
            held.drop()
            return None, NO_ROOM
        return held, ""

    def _expect(self, caller: Caller) -> None:
        """Drop what this caller has offered before, and later what it leaves when it goes."""
        key = id(caller)
        if key in self._offers:
            _drop(self._offers.pop(key))
        else:
            caller.on_close.append(lambda: _drop(self._offers.pop(key, [])))


def _drop(held: Sequence[_Held | None]) -> None:
    for each in held:
        if each is not None:
            each.drop()
