"""The file that keeps what operators have said of servers: drain and maint, by pool and server.

A state is kept when its server leaves the configuration: a node that is taken out and put back, or a reload
that is taken back, must not give traffic to a server that an operator has taken it from. `ready` removes it.
"""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from appliance.core.roster import Key
from appliance.net.files.snapshots import write_atomically
from appliance.wire.health_board import Admin


class OperatorStatesError(Exception):
    """The file cannot be read, written or understood."""


def load(path: Path) -> dict[Key, Admin]:
    """Return the states, none when there is no file; raises OperatorStatesError."""
    try:
        said = msgspec.json.decode(path.read_bytes(), type=dict[str, dict[str, str]])
        return {
            (pool, server): Admin[state.upper()]
            for pool, servers in said.items()
            for server, state in servers.items()
        }
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError, KeyError) as error:
        raise OperatorStatesError(f"{path}: {error}") from error


def save(path: Path, states: Mapping[Key, Admin]) -> None:
    """Replace the file, which is whole at every moment; raises OperatorStatesError."""
    said: dict[str, dict[str, str]] = {}
    for (pool, server), admin in sorted(states.items()):
        said.setdefault(pool, {})[server] = admin.name.lower()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, msgspec.json.format(msgspec.json.encode(said), indent=2) + b"\n")
    except OSError as error:
        raise OperatorStatesError(f"{path}: {error}") from error
