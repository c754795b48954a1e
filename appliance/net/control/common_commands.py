"""What every program answers: `status`, and the commands by which `reload` changes its configuration.

These are `prepare`, then `commit` or `abort`. Each may be repeated: `reload` does so after a time-out or its
own crash.
"""

import os
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TypedDict

from appliance.model.paths import Paths
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.control.control_server import Call, Handler
from appliance.net.files import snapshots
from appliance.wire.lines import status_answer
from appliance.wire.lines.control import Answer, AnswerProblem, bad, good


class ProposedSnapshot:
    """At most one prepared snapshot; none at a `commit` if the process started after the `prepare`."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._held: Snapshot | None = None

    @property
    def number(self) -> int | None:
        """The number of the prepared snapshot, None without one."""
        return self._held.number if self._held else None

    def read(self, number: int) -> Snapshot:
        """Return the snapshot of that number, without keeping it; raises ControlError."""
        return snapshots.proposed(self._paths, number)

    def hold(self, snapshot: Snapshot) -> None:
        """Keep a snapshot that can be applied, in place of any other."""
        self._held = snapshot

    def take(self, number: int) -> Snapshot:
        """Return the snapshot to commit: the kept one, else read again; raises ControlError."""
        held, self._held = self._held, None
        return held if held is not None and held.number == number else self.read(number)

    def forget(self, number: int) -> None:
        """Drop the kept snapshot if it is this one."""
        if self.number == number:
            self._held = None


class StatusHead(TypedDict):
    """The first fields of every program's answer to `status` (wire.lines.status_answer)."""

    program: str
    pid: int
    started_at: float
    snapshot: int
    pending: int | None


class ReloadCommands:
    """The commands of a program that applies its configuration at once; its subclasses add their own.

    `applied` returns the snapshot applied last, `apply` applies another. `differs` returns whether
    the first of two changes anything here after the second, `objections` why one cannot be applied.
    """

    def __init__(
        self,
        program: str,
        paths: Paths,
        *,
        applied: Callable[[], Snapshot | None],
        apply: Callable[[Snapshot], None],
        differs: Callable[[Snapshot, Snapshot], bool] = lambda *_: True,
        objections: Callable[[Snapshot], Iterable[AnswerProblem]] = lambda _: (),
    ) -> None:
        self._program = program
        self._started_at = time.time()
        self._proposed = ProposedSnapshot(paths)
        self._applied = applied
        self._apply = apply
        self._differs = differs
        self._objections = objections

    def head(self) -> StatusHead:
        """Return the first fields of an answer to `status`; `snapshot` is 0 before the first is applied."""
        applied = self._applied()
        return {
            "program": self._program,
            "pid": os.getpid(),
            "started_at": self._started_at,
            "snapshot": applied.number if applied else 0,
            "pending": self._proposed.number,
        }

    def handlers(self) -> Mapping[str, Handler]:
        """Return the commands by their names."""
        return {
            "status": lambda _: good(**status_answer.encode(self.status())),
            "prepare": self._prepare,
            "commit": self._commit,
            "abort": self._abort,
        }

    def status(self) -> object:
        """Return the answer to `status`."""
        return self.head()

    def _prepare(self, call: Call) -> Answer:
        """Read a proposed snapshot, and answer whether it can be applied; nothing changes yet."""
        snapshot = self._proposed.read(call.question.integer("snapshot"))
        if objections := tuple(self._objections(snapshot)):
            return bad(*objections)
        self._proposed.hold(snapshot)
        applied = self._applied()
        changed = applied is None or self._differs(snapshot, applied)
        return good(changed=changed, generation=None)

    def _commit(self, call: Call) -> Answer:
        """Apply a snapshot; one prepared by an earlier process is read again."""
        number = call.question.integer("snapshot")
        applied = self._applied()
        if applied is None or applied.number != number:
            self._apply(self._proposed.take(number))
        return good(snapshot=number)

    def _abort(self, call: Call) -> Answer:
        """Discard a prepared snapshot."""
        self._proposed.forget(call.question.integer("snapshot"))
        return good()
