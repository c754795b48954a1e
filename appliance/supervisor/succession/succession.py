"""The take-overs of one supervisord: by another one, and from another one.

    new: take-over   ->   old: stands by: it restarts nothing, and lets its programs be ended
    new: ends the old programs, starts its own, which take sockets, sessions and addresses over
    new: done        ->   old: is relieved, and ends when the last of its processes has

Each watches the connection. If the new one dies, sends `give-back` or takes too long, the old one resumes: it
ends what the new one started, and starts what it lacks, by the same take-overs. If the old one dies, the new
one continues alone. If the old one is stopped, it withdraws, and the new one gives way. So one of the two is
in charge in the end, at whatever line either of them is killed.
"""

import os
import socket
import time

from appliance.model.paths import Paths
from appliance.net.files.lock_files import KeptLock
from appliance.net.process import subreaper
from appliance.supervisor.succession.dialogue import Dialogue, Due, refuse
from appliance.supervisor.succession.line_connection import LineConnection, SocketMap
from appliance.supervisor.succession.listener import SuccessionListener
from appliance.supervisor.succession.making_way import MakingWay
from appliance.supervisor.succession.reports import SuccessionReports
from appliance.supervisor.succession.take_over_state import Phase, Supervised
from appliance.supervisor.succession.taking_over import TakingOver
from appliance.supervisor.succession.upgrade import Starter, Upgrade
from appliance.wire.lines.control import ControlError, decode_question
from appliance.wire.lines.succession import TAKE_OVER, UPGRADE, Predecessor


class Succession:
    """The part of one supervisord in take-overs; `predecessor` is the one that it first takes over from."""

    def __init__(  # what it connects
        self,
        paths: Paths,
        *,
        reports: SuccessionReports,
        lock: KeptLock,
        supervised: Supervised,
        socket_map: SocketMap,
        starter: Starter,
        predecessor: Predecessor | None = None,
    ) -> None:
        self._paths, self._reports, self._map = paths, reports, socket_map
        self._predecessor = predecessor
        self._state, self._due = reports.state, Due()
        dialogue = Dialogue(self._due)
        self._making_way = MakingWay(
            self._state,
            reports=reports,
            lock=lock,
            supervised=supervised,
            dialogue=dialogue,
            relieved=self._relieved,
            resumed=lambda reason: self._upgrade.resumed(self._state.other_pid, reason),
        )
        self._taking_over = TakingOver(
            self._state,
            paths,
            reports=reports,
            lock=lock,
            supervised=supervised,
            dialogue=dialogue,
            in_charge=self._listen,
        )
        self._upgrade = Upgrade(self._state, due=self._due, reports=reports, starter=starter)
        self._listener: SuccessionListener | None = None

    @property
    def relieved(self) -> bool:
        """Return whether the other supervisord is in charge, for the first time or again."""
        return self._state.phase is Phase.RELIEVED

    @property
    def failed(self) -> bool:
        """Return whether we could not take over."""
        return self._state.failed

    @property
    def busy(self) -> bool:
        """Return whether a take-over is under way, and the loop must check often."""
        return self._state.phase is not Phase.SERVING or self._upgrade.busy

    @property
    def in_charge(self) -> bool:
        """Return whether we run the service: not before the former one is relieved, nor after we are."""
        return self._state.phase in (Phase.SERVING, Phase.STANDING_BY)

    def begin(self, now: float) -> None:
        """Listen, or continue with the appliance that stands by for us."""
        found = self._predecessor
        if found is None:
            self._listen()
            return
        connection = socket.socket(fileno=found.connection)
        connection.set_inheritable(False)
        self._taking_over.begin(found, LineConnection(connection, self._map), now)

    def tick(self, now: float) -> bool:
        """Do what is due, and return whether this process must exit; called at each turn of the loop."""
        self._due.run(now)
        if self._listener:
            self._listener.keep(now)
        self._upgrade.look(now)
        if self._state.phase is Phase.TAKING_OVER:
            self._taking_over.look(now)
        elif self._state.phase is Phase.STANDING_BY:
            self._making_way.look(now)
        if not self.relieved:
            return False
        return now > self._state.deadline or not subreaper.children() - {self._state.other_pid}

    def told_to_end(self) -> bool:
        """Return whether nothing is left to be stopped, as the other supervisord is in charge."""
        self._upgrade.abandon()
        if self._state.phase is Phase.STANDING_BY:
            self._making_way.told_to_end()
        elif self._state.phase is Phase.TAKING_OVER:
            self._taking_over.told_to_end(time.monotonic())
        elif self.relieved:
            self._state.deadline = 0.0
        return self.relieved

    def upgrade(self) -> None:
        """Start a take-over by the release now installed where this one was started from."""
        self._upgrade.signalled(time.monotonic(), os.environ, refusal=self._making_way.refusal())

    def close(self) -> None:
        """Stop listening."""
        if self._listener:
            self._listener.close()
            self._listener = None

    def _relieved(self) -> None:
        self._upgrade.relieved(self._state.other_pid)
        self.close()

    def _listen(self) -> None:
        try:
            self._listener = SuccessionListener(
                self._paths.succession_socket,
                self._map,
                lambda connection, line: self._due.add(lambda now: self._answer(connection, line, now)),
            )
        except OSError as error:
            self._reports.cannot_listen(error.strerror or str(error))

    def _answer(self, connection: LineConnection, line: bytes, now: float) -> None:
        """Answer a request; a client that has gone already wants nothing."""
        if not connection.is_open:
            return
        try:
            question = decode_question(line)
        except ControlError as error:
            refuse(connection, str(error))
            return
        if question.command == TAKE_OVER:
            self._making_way.asked(connection, question, now)
        elif question.command == UPGRADE:
            self._upgrade.asked(connection, question, now, refusal=self._making_way.refusal())
        else:
            refuse(connection, f"unknown command {question.command!r}")
