"""Programs that behave as reload expects: control servers that prepare, commit, abort, and keep a journal."""

import gevent
from gevent.event import Event

from appliance.model.paths import Paths
from appliance.net.control.control_server import Call, ControlServer
from appliance.net.files import snapshots
from appliance.wire.lines.control import Answer, AnswerProblem, bad, good


class FakeProgram:
    """One program; `journal` is shared by all and holds what each was asked, in order."""

    def __init__(self, paths: Paths, name: str, journal: list[str], *, obeys: int) -> None:
        self.name = name
        self.obeys = obeys
        self.pending: int | None = None
        self.refuses: AnswerProblem | None = None
        self.disobeys: AnswerProblem | None = None
        self.hangs_in: str | None = None
        self.dies_in: str | None = None
        self._paths = paths
        self._journal = journal
        self._server: ControlServer | None = None
        self.start()

    def start(self) -> None:
        """Come up with the accepted snapshot, as a program does."""
        accepted = snapshots.read(self._paths.accepted)
        self.obeys = accepted.number if accepted else self.obeys
        handlers = {"prepare": self._prepare, "commit": self._commit, "abort": self._abort}
        self._server = ControlServer(
            self._paths.control(self.name),
            {"status": lambda _: self._status(), **handlers},
            on_error=lambda *_: None,
        )

    def stop(self) -> None:
        """Go away."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def _status(self) -> Answer:
        failure = {"problems": [{"message": self.disobeys.message}]} if self.disobeys else None
        return good(program=self.name, snapshot=self.obeys, failure=failure)

    def _prepare(self, call: Call) -> Answer:
        number = self._noted(call)
        if self.refuses:
            return bad(self.refuses)
        self.pending = number
        return good(changed=True, generation=None)

    def _commit(self, call: Call) -> Answer:
        number = self._noted(call)
        if self.pending != number:
            return bad(f"snapshot {number} is not prepared")
        self.obeys, self.pending = number, None
        return bad(self.disobeys) if self.disobeys else good()

    def _abort(self, call: Call) -> Answer:
        self._noted(call)
        self.pending = None
        return good()

    def _noted(self, call: Call) -> int:
        command, number = call.question.command, call.question.integer("snapshot")
        self._journal.append(f"{self.name} {command} {number}")
        if self.hangs_in == command:
            Event().wait()
        if self.dies_in == command:
            self.stop()
            raise gevent.GreenletExit
        return number
