"""What the programs must do when the configuration changes."""

from collections.abc import Container
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from appliance.core.program_table import needed
from appliance.model.program_names import DISCOVER, FORWARD, PROXIES, REDIRECT, STATS, VRRP
from appliance.model.snapshot.snapshot import Snapshot

_AT_ONCE: Final = frozenset({*PROXIES, DISCOVER, STATS})
"""Programs that commit at the same time: none needs another's commit before its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramChanges:
    """Programs in the order of commits (`core.program_table.PROGRAMS`).

    `prepare` holds all that the old configuration needed, `stop` those of them that the new one does not:
    they are prepared and committed too, which drains them. `start` holds those that only the new one needs.
    """

    prepare: tuple[str, ...]
    start: tuple[str, ...]
    stop: tuple[str, ...]

    def commits(self, *, but: Container[str]) -> tuple[tuple[str, ...], ...]:
        """Return the programs of `prepare` that are not in `but`, by the steps of the commit."""
        those = (each for each in self.prepare if each not in but)
        steps = groupby(those, key=lambda each: "" if each in _AT_ONCE else each)
        return tuple(tuple(together) for _, together in steps)


def plan(old: Snapshot, new: Snapshot) -> ProgramChanges:
    """Return what the programs must do for a change from `old` to `new`."""
    before, after = needed(old), needed(new)
    return ProgramChanges(
        prepare=tuple(sorted(before, key=lambda each: _turn(each, goes=each not in after))),
        start=tuple(each for each in after if each not in before),
        stop=tuple(each for each in before if each not in after),
    )


def _turn(program: str, *, goes: bool) -> tuple[bool, bool]:
    """Return the sort key of programs in the order of commits: those that stop come after those that stay."""
    return program == VRRP, goes and program not in (REDIRECT, FORWARD)
