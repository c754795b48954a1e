"""The commands by which `reload` changes a program's configuration: `prepare`, then `commit` or `abort`.

Each may be repeated: `reload` does so after a time-out or its own crash.
"""

from collections.abc import Callable, Iterable, Mapping

from appliance.model.paths import Paths
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.control.control_server import Call, Handler
from appliance.net.files.proposed_snapshot import ProposedSnapshot
from appliance.wire.lines.control import Answer, AnswerProblem, bad, good


class ReloadCommands:
    """The commands of a program that applies its configuration at once.

    `applied` returns the snapshot applied last, `apply` applies another. `differs` returns whether one
    changes anything here, `objections` why it cannot be applied.
    """

    def __init__(
        self,
        paths: Paths,
        *,
        applied: Callable[[], Snapshot | None],
        apply: Callable[[Snapshot], None],
        differs: Callable[[Snapshot], bool] = lambda _: True,
        objections: Callable[[Snapshot], Iterable[AnswerProblem]] = lambda _: (),
    ) -> None:
        self._proposed = ProposedSnapshot(paths)
        self._applied = applied
        self._apply = apply
        self._differs = differs
        self._objections = objections

    @property
    def pending(self) -> int | None:
        """Number of the prepared snapshot, None if there is none."""
        return self._proposed.number

    @property
    def number(self) -> int:
        """Number of the snapshot applied last, 0 before the first."""
        applied = self._applied()
        return applied.number if applied else 0

    def handlers(self) -> Mapping[str, Handler]:
        """Return the commands by their names."""
        return {"prepare": self._prepare, "commit": self._commit, "abort": self._abort}

    def _prepare(self, call: Call) -> Answer:
        """Read a proposed snapshot, and answer whether it can be applied; nothing changes yet."""
        snapshot = self._proposed.read(call.question.integer("snapshot"))
        if objections := tuple(self._objections(snapshot)):
            return bad(*objections)
        self._proposed.hold(snapshot)
        return good(changed=self._differs(snapshot), generation=None)

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
