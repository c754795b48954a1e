"""The snapshot that a program has prepared, until `commit` or `abort` comes for it."""

from appliance.model.paths import Paths
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.files import snapshots


class ProposedSnapshot:
    """At most one. `commit` may come without it: to a process that was started after the `prepare`."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._held: Snapshot | None = None

    @property
    def number(self) -> int | None:
        """Its number, None while nothing is prepared."""
        return self._held.number if self._held else None

    def read(self, number: int) -> Snapshot:
        """Return the snapshot of that number, which is not held by this; raises ControlError."""
        return snapshots.proposed(self._paths, number)

    def hold(self, snapshot: Snapshot) -> None:
        """Keep a snapshot that could be applied, in place of any other."""
        self._held = snapshot

    def take(self, number: int) -> Snapshot:
        """Return the snapshot to commit: what is held, else read again; raises ControlError."""
        held, self._held = self._held, None
        return held if held is not None and held.number == number else self.read(number)

    def forget(self, number: int) -> None:
        """Hold it no more; another one stays."""
        if self.number == number:
            self._held = None
