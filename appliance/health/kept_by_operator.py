"""Operator settings of servers (drain, maint, weights), kept across restarts of the program.

A server in maint must not get traffic because a program was restarted, or because a file was damaged: then
the health board has the last settings. A setting is kept when its server leaves the configuration: if the
server comes back, or the reload is undone, it must not get traffic that an operator took from it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Generic, TypeVar

import msgspec

from appliance.core.checks.checked_servers import Key
from appliance.health.reports import HealthReports
from appliance.model.paths import Paths
from appliance.model.server_states import AdminState
from appliance.model.server_weights import OperatorWeight, operator_weight
from appliance.net.files import state_files
from appliance.net.files.atomic_write import write_atomically
from appliance.net.files.state_files import FileUnusable
from appliance.wire.boards.health_board import ServerHealthRecord
from appliance.wire.checksummed_json import ChecksumError, checksummed, verified

Said = TypeVar("Said")


class OperatorOverridesError(Exception):
    """The file cannot be read, written or understood."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary(Generic[Said]):
    """How one kind of setting is written, and read; `read` raises ValueError."""

    write: Callable[[Said], str]
    read: Callable[[str], Said]


def load(path: Path, words: Vocabulary[Said]) -> dict[Key, Said]:
    """Return the settings, none without a file; raises OperatorOverridesError."""
    try:
        data = state_files.read(path)
        return {} if data is None else _decoded(verified(data), words)
    except (FileUnusable, ChecksumError, ValueError, RecursionError) as error:  # msgspec's are ValueErrors
        raise OperatorOverridesError(f"{path}: {error}") from error


def save(path: Path, words: Vocabulary[Said], said: Mapping[Key, Said]) -> None:
    """Replace the file in one step (atomic_write); raises OperatorOverridesError."""
    by_pool: dict[str, dict[str, str]] = {}
    for pool, server in sorted(said):
        by_pool.setdefault(pool, {})[server] = words.write(said[pool, server])
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        state_files.clear_way(path)
        write_atomically(
            path, checksummed(msgspec.json.format(msgspec.json.encode(by_pool), indent=2)) + b"\n"
        )
    except OSError as error:
        raise OperatorOverridesError(f"{path}: {error.strerror or error}") from error


def _decoded(data: bytes, words: Vocabulary[Said]) -> dict[Key, Said]:
    by_pool = msgspec.json.decode(data, type=dict[str, dict[str, str]])
    return {
        (pool, server): words.read(text)
        for pool, servers in by_pool.items()
        for server, text in servers.items()
    }


def _state(text: str) -> AdminState:
    try:
        return AdminState[text.upper()]
    except KeyError as error:
        raise ValueError(f"unknown state {text!r}") from error


STATES: Final = Vocabulary(write=lambda admin: admin.name.lower(), read=_state)
"""The states drain and maint; a ready server has none."""

WEIGHTS: Final[Vocabulary[OperatorWeight]] = Vocabulary(write=str, read=operator_weight)
"""Weights, such as `30` and `50%`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptEvents:
    """Log events for files that cannot be read or written."""

    unreadable: str
    not_kept: str


_STATES_EVENTS: Final = KeptEvents(
    unreadable="operator-states-unreadable", not_kept="operator-states-not-kept"
)
_WEIGHTS_EVENTS: Final = KeptEvents(
    unreadable="operator-weights-unreadable", not_kept="operator-weights-not-kept"
)


class KeptByOperator:
    """The two files: of states, and of weights."""

    def __init__(self, paths: Paths, reports: HealthReports) -> None:
        self.states = KeptWords(paths.operator_states, _STATES_EVENTS, STATES, reports, known=_state_in)
        self.weights = KeptWords(
            paths.operator_weights, _WEIGHTS_EVENTS, WEIGHTS, reports, known=lambda each: each.operator_weight
        )


class KeptWords(Generic[Said]):
    """The file at `path`.

    If it cannot be written, its settings take effect nevertheless, and that is reported. `known` returns the
    setting in a record of the board, None if there is none.
    """

    def __init__(
        self,
        path: Path,
        events: KeptEvents,
        words: Vocabulary[Said],
        reports: HealthReports,
        *,
        known: Callable[[ServerHealthRecord], Said | None],
    ) -> None:
        self._path = path
        self._events = events
        self._words = words
        self._reports = reports
        self._known = known

    def load(self, records: tuple[ServerHealthRecord, ...]) -> dict[Key, Said]:
        """Return the settings in the file; if it is unreadable, those in the board's `records`."""
        try:
            return load(self._path, self._words)
        except OperatorOverridesError as error:
            self._reports.log.error(  # noqa: TRY400  # a damaged file is no bug: there is no traceback to see
                self._events.unreadable,
                reason=str(error),
                aside=str(state_files.set_aside(self._path)),
            )
            known = {(each.pool, each.server): self._known(each) for each in records}
            said = {key: each for key, each in known.items() if each is not None}
            self.keep(said)
            return said

    def keep(self, said: Mapping[Key, Said]) -> None:
        """Write the settings of all servers."""
        path = str(self._path)
        try:
            save(self._path, self._words, said)
            self._reports.not_kept.pop(path, None)
        except OperatorOverridesError as error:
            self._reports.not_kept[path] = str(error).removeprefix(f"{path}: ")
            self._reports.log.error(self._events.not_kept, reason=str(error))  # noqa: TRY400  # no bug

    def warning(self) -> dict[str, str]:
        """Return the warning for the operator, as fields of an answer; none if the file was written."""
        reason = self._reports.not_kept.get(str(self._path))
        return {"not_kept": f"{self._path}: {reason}"} if reason else {}


def _state_in(record: ServerHealthRecord) -> AdminState | None:
    return None if record.admin is AdminState.READY else record.admin
