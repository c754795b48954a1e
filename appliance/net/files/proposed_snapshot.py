"""The snapshot that a program has prepared, until its `commit` or `abort`."""

from appliance.model.paths import Paths
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.files import snapshots


class ProposedSnapshot:
    """At most one prepared snapshot.

    `commit` may come without it, if the process started after the `prepare`.
    """

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
