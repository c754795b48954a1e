"""Connections to servers that other nodes have: the kernel refuses connects from their addresses and ports.

A node that gets its virtual IP back connects to servers before the sessions that it gave away are back.
The file outlives a start of the machine: nodes give their sessions away to be started.
"""

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec
from structlog.typing import FilteringBoundLogger

from appliance.core.migration import ruleset
from appliance.core.migration.ruleset import GIVEN_FOR, Ends, still_given
from appliance.model.paths import Paths
from appliance.net.files import state_files
from appliance.net.files.atomic_write import write_whole
from appliance.net.nftables.nftables import Nftables, NftablesError, NftablesUser
from appliance.wire.nftables.nftables_commands import Family

_AT_ONCE: Final = 1000  # elements of one transaction


class GivenPorts(NftablesUser):
    """The tables of both families, which exist from the first connection on."""

    def __init__(
        self, paths: Paths, log: FilteringBoundLogger, *, connect: Callable[[], Nftables] = Nftables
    ) -> None:
        super().__init__(connect)
        self._path, self._log = paths.given_ports, log
        self._made: set[Family] = set()
        self._changed = False
        self._until = _read(self._path)
        self._refuse(list(self._until))

    def give(self, connections: Iterable[Ends]) -> None:
        """Refuse connects like these from now on."""
        now = time.time()
        fresh = [each for each in dict.fromkeys(connections) if self._until.get(each, 0.0) <= now]
        self._until.update(dict.fromkeys(fresh, now + GIVEN_FOR))
        self._changed |= bool(fresh)
        self._refuse(fresh)

    def take_back(self, connections: Collection[Ends]) -> None:
        """Refuse them no more: they are ours again."""
        back = [each for each in connections if self._until.pop(each, 0.0) > time.time()]
        self._changed |= bool(back)
        for family, some in _parts(back):
            self._run(ruleset.take_back(family, some))

    def keep(self) -> None:
        """Write the file, if it is due."""
        if not self._changed:
            return
        self._changed = False
        now = time.time()
        self._until = {each: until for each, until in self._until.items() if until > now}
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            state_files.clear_way(self._path)
            write_whole(self._path, msgspec.json.encode(list(self._until.items())))
        except OSError as error:
            self._log.warning("session-move-failed", reason=f"{self._path}: {error.strerror or error}")

    def close(self) -> None:
        """Write the file; the kernel removes the tables."""
        self.keep()
        self._disconnect()

    def _refuse(self, connections: Collection[Ends]) -> None:
        now = time.time()
        for family, some in _parts(connections):
            if family not in self._made:
                self._made.add(family)
                self._run(ruleset.make_given(family))
            self._run(ruleset.give(family, {each: max(1.0, self._until[each] - now) for each in some}))

    def _run(self, script: str) -> None:
        try:
            self._open().run(script)
        except NftablesError as error:
            self._log.error("session-move-failed", reason=str(error))  # no bug


def _read(path: Path) -> dict[Ends, float]:
    kept = state_files.decoded(path, list[tuple[Ends, float]])
    if kept is None and os.path.lexists(path):  # also False without permission to look
        state_files.set_aside(path)
    return still_given(kept or (), now=time.time())


def _parts(connections: Iterable[Ends]) -> Iterator[tuple[Family, list[Ends]]]:
    for family, some in ruleset.by_family(connections).items():
        for first in range(0, len(some), _AT_ONCE):
            yield family, some[first : first + _AT_ONCE]
