"""Files of operator settings of servers: a state such as drain, or a weight, by pool and server.

A setting is kept when its server leaves the configuration: if the server comes back, or the reload is undone,
it must not get traffic that an operator took from it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Generic, TypeVar

import msgspec

from appliance.core.checks.checked_servers import Key
from appliance.model.server_states import AdminState
from appliance.model.server_weights import OperatorWeight, operator_weight
from appliance.net.files import state_files
from appliance.net.files.atomic_write import write_atomically
from appliance.net.files.state_files import FileUnusable
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
