"""The file of administrative states that operators have set for servers: drain and maint, by pool and server.

A state is kept when its server leaves the configuration: when the server comes back, or the reload is undone,
it must not get traffic that an operator has taken from it. The command `ready` removes the state.
"""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from appliance.core.checks.checked_servers import Key
from appliance.model.server_states import AdminState
from appliance.net.files import state_files
from appliance.net.files.atomic_write import write_atomically
from appliance.net.files.state_files import FileUnusable
from appliance.wire.seal import SealError, seal, unseal


class OperatorStatesError(Exception):
    """The file cannot be read, written or understood."""


def load(path: Path) -> dict[Key, AdminState]:
    """Return the states, none when there is no file; raises OperatorStatesError."""
    try:
        data = state_files.read(path)
        return {} if data is None else _decoded(unseal(data))
    except (FileUnusable, SealError, ValueError, RecursionError) as error:  # msgspec's are ValueErrors
        raise OperatorStatesError(f"{path}: {error}") from error


def save(path: Path, states: Mapping[Key, AdminState]) -> None:
    """Replace the file in one step (atomic_write); raises OperatorStatesError."""
    states_by_pool: dict[str, dict[str, str]] = {}
    for (pool, server), admin in sorted(states.items()):
        states_by_pool.setdefault(pool, {})[server] = admin.name.lower()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        state_files.clear_way(path)
        write_atomically(
            path, seal(msgspec.json.format(msgspec.json.encode(states_by_pool), indent=2)) + b"\n"
        )
    except OSError as error:
        raise OperatorStatesError(f"{path}: {error.strerror or error}") from error


def _decoded(data: bytes) -> dict[Key, AdminState]:
    states_by_pool = msgspec.json.decode(data, type=dict[str, dict[str, str]])
    return {
        (pool, server): _admin(state)
        for pool, servers in states_by_pool.items()
        for server, state in servers.items()
    }


def _admin(state: str) -> AdminState:
    try:
        return AdminState[state.upper()]
    except KeyError as error:
        raise ValueError(f"unknown state {state!r}") from error
