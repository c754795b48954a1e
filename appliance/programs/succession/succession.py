"""The take-overs of one supervisord: of its place by another one, and of the place of another one.

    new: take-over   ->   old: stands by: it restarts nothing, and lets its programs be ended
    new: ends the old programs, starts its own, which take sockets, sessions and addresses over
    new: done        ->   old: is relieved, and ends when the last of its processes has

Each watches the connection. If the new one dies, says `give-back` or takes too long, the old one goes on: it
ends what the new one started, and starts what it lacks, by the same take-overs. If the old one dies, the new
one goes on alone. If the old one is told to end, it withdraws, and the new one gives way. So there is one of
the two that ends in charge, at whatever line either of them is killed.
"""

import socket
import time

from structlog.typing import FilteringBoundLogger

from appliance.model.operator_events import Tell
from appliance.model.paths import Paths
from appliance.net.files.lock_files import KeptLock
from appliance.net.process import subreaper
from appliance.programs.succession.dialogue import Dialogue, Due, refuse
from appliance.programs.succession.line_connection import LineConnection, SocketMap
from appliance.programs.succession.listener import SuccessionListener
from appliance.programs.succession.making_way import MakingWay
from appliance.programs.succession.place import Phase, Place, Supervised
from appliance.programs.succession.taking_over import TakingOver
from appliance.programs.succession.telling import Telling
from appliance.wire.lines.control import ControlError, decode_question
from appliance.wire.lines.succession import TAKE_OVER, Predecessor


class Succession:
    """What one supervisord does in take-overs; `predecessor` is from whom it takes over itself, at first."""

    def __init__(  # what it connects
        self,
        paths: Paths,
        log: FilteringBoundLogger,
        *,
        tell: Tell,
        lock: KeptLock,
        supervised: Supervised,
        socket_map: SocketMap,
        predecessor: Predecessor | None = None,
    ) -> None:
        self._paths, self._log, self._map = paths, log, socket_map
        self._predecessor = predecessor
        self._place, self._due = Place(), Due()
        dialogue, telling = Dialogue(self._due), Telling(self._place, paths, log, tell)
        self._making_way = MakingWay(
            self._place,
            telling=telling,
            lock=lock,
            supervised=supervised,
            dialogue=dialogue,
            relieved=self.close,
        )
        self._taking_over = TakingOver(
            self._place,
            paths,
            telling=telling,
            lock=lock,
            supervised=supervised,
            dialogue=dialogue,
            in_charge=self._listen,
        )
        self._listener: SuccessionListener | None = None

    @property
    def relieved(self) -> bool:
        """Return whether another one is in charge of what we had, or has it again."""
        return self._place.phase is Phase.RELIEVED

    @property
    def failed(self) -> bool:
        """Return whether we could not take over."""
        return self._place.failed

    @property
    def busy(self) -> bool:
        """Return whether a take-over is under way, and the loop is to look often."""
        return self._place.phase is not Phase.SERVING

    def begin(self, now: float) -> None:
        """Listen, or go on with the one that stands by for us."""
        found = self._predecessor
        if found is None:
            self._listen()
            return
        connection = socket.socket(fileno=found.connection)
        connection.set_inheritable(False)
        self._taking_over.begin(found, LineConnection(connection, self._map), now)

    def tick(self, now: float) -> bool:
        """Do what is due, and say whether this process is to end; called at each turn of the loop."""
        self._due.run(now)
        if self._listener:
            self._listener.keep(now)
        if self._place.phase is Phase.TAKING_OVER:
            self._taking_over.look(now)
        elif self._place.phase is Phase.STANDING_BY:
            self._making_way.look(now)
        return self.relieved and (now > self._place.deadline or not subreaper.children())

    def told_to_end(self) -> bool:
        """Say whether nothing is left to be stopped, as another one is in charge."""
        if self._place.phase is Phase.STANDING_BY:
            self._making_way.told_to_end()
        elif self._place.phase is Phase.TAKING_OVER:
            self._taking_over.told_to_end(time.monotonic())
        elif self.relieved:
            self._place.deadline = 0.0
        return self.relieved

    def close(self) -> None:
        """Listen no more."""
        if self._listener:
            self._listener.close()
            self._listener = None

    def _listen(self) -> None:
        try:
            self._listener = SuccessionListener(self._paths.succession_socket, self._map, self._asked)
        except OSError as error:
            self._log.warning("cannot-be-taken-over", reason=error.strerror or str(error))

    def _asked(self, connection: LineConnection, line: bytes) -> None:
        self._due.add(lambda now: self._answer(connection, line, now))

    def _answer(self, connection: LineConnection, line: bytes, now: float) -> None:
        try:
            question = decode_question(line)
        except ControlError as error:
            refuse(connection, str(error))
            return
        if question.command == TAKE_OVER:
            self._making_way.asked(connection, question, now)
        else:
            refuse(connection, f"unknown command {question.command!r}")
