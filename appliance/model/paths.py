"""The paths of all files and sockets: three directories that can be moved, and the names in them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

CONFIG_VARIABLE: Final = "APPLIANCE_CONFIG"
RUNTIME_VARIABLE: Final = "APPLIANCE_RUNTIME_DIR"
STATE_VARIABLE: Final = "APPLIANCE_STATE_DIR"
HAPROXY_VARIABLE: Final = "APPLIANCE_HAPROXY"
KEEPALIVED_VARIABLE: Final = "APPLIANCE_KEEPALIVED"
RELOAD_SOCKETS_VARIABLE: Final = "APPLIANCE_RELOAD_SOCKETS"
"""Paths of sockets, with `:` between them, as in HAPROXY_VARIABLE."""

NODE_VARIABLE: Final = "APPLIANCE_NODE"
"""Name of this node if it differs from the host's: the name in `nodes` of the configuration."""


class _File:
    """A file with a fixed name in one of the directories."""

    def __init__(self, directory: Literal["runtime", "state"], name: str) -> None:
        self._directory, self._name = directory, name

    def __get__(self, paths: "Paths", _: type["Paths"]) -> Path:
        directory: Path = getattr(paths, self._directory)
        return directory / self._name


@dataclass(frozen=True, slots=True, kw_only=True)
class Paths:
    """The operator's files, the runtime directory (gone at reboot) and the state directory (kept).

    `haproxy` and `keepalived` are their configuration files, used alongside `config`, which may then be
    missing; they win over its `source`. `reload_sockets` accept the line `reload` from the start on, before
    there is a configuration.
    """

    config: Path = Path("/etc/appliance/appliance.yaml")
    runtime: Path = Path("/run/appliance")
    state: Path = Path("/var/lib/appliance")
    haproxy: tuple[Path, ...] = ()
    keepalived: Path | None = None
    reload_sockets: tuple[Path, ...] = ()

    reload_socket = _File("runtime", "reload.sock")
    """Socket that accepts the line `reload`."""
    supervisor_socket = _File("runtime", "supervisor.sock")
    """Socket of supervisord's XML-RPC."""
    health_board = _File("runtime", "health.board")
    """Board that `health` writes."""
    health_connect_failures = _File("runtime", "health.doubts")
    """Socket of `health`, to which workers report the servers that clients could not connect to."""
    lock = _File("runtime", "appliance.lock")
    """File whose lock says that an appliance runs here."""
    succession_socket = _File("runtime", "succession.sock")
    """Socket of supervisord for an appliance that wants to take over."""
    take_overs = _File("runtime", "take-overs.json")
    """File with the results of take-overs; it does not exist before the first try."""
    accepted = _File("runtime", "accepted.json")
    """The accepted snapshot, which every program reads."""
    accepted_for_readers = _File("runtime", "accepted-for-readers.json")
    """The accepted snapshot without secrets, for the group of `group:`."""
    last_good = _File("state", "last-good.json")
    """Copy of the snapshot accepted last, for a start with a broken configuration."""
    history = _File("state", "history.ring")
    """Figures of the last hours, minute by minute, kept by `stats`."""
    operator_states = _File("state", "operator-states.json")
    """Servers that the operator has put in drain or maint."""
    operator_weights = _File("state", "operator-weights.json")
    """Weights that the operator has given servers."""
    given_ports = _File("state", "given-ports.json")
    """Connections to servers that `migrate` has given to other nodes, whose ports are in use."""
    program_starts = _File("runtime", "program-starts.json")
    """How often supervisord has started each program."""
    reload_counts = _File("runtime", "reload-counts.json")
    """How many reloads had which result."""
    events = _File("state", "events.jsonl")
    """Kept events of the whole appliance, as JSON lines; the older part ends with .1."""
    vrrp_board = _File("runtime", "vrrp.board")
    """Board that `vrrp` writes."""
    linger_lock = _File("runtime", "linger.lock")
    """Lock of `linger`, which exists from its first start on: then it may have left something."""
    announce_lock = _File("runtime", "announce.lock")
    """Lock of `announce`, which exists from its first start on: then it may have left something."""
    bird_config = _File("runtime", "bird.conf")
    """Configuration of BIRD; it has passwords."""
    bird_control = _File("runtime", "bird.ctl")
    """Control socket of BIRD."""
    bird_log = _File("runtime", "bird.log")
    """Log of BIRD, which it keeps short."""
    conntrackd_config = _File("runtime", "conntrackd.conf")
    """Configuration of conntrackd."""
    conntrackd_control = _File("runtime", "conntrackd.ctl")
    """Control socket of conntrackd."""
    conntrackd_lock = _File("runtime", "conntrackd.lock")
    """Lock file of conntrackd, which does not start while the file exists."""
    conntrackd_log = _File("runtime", "conntrackd.log")
    """Log of the conntrackd that runs; the next one overwrites it."""
    owned_addresses = _File("runtime", "owned-addresses.json")
    """Virtual addresses that this machine's `vrrp` may hold, for a start after a crash."""
    found_servers = _File("runtime", "found-servers.json")
    """Servers that `discover` has found in the cluster, for `reload`."""
    kept_found_servers = _File("state", "found-servers.json")
    """Copy of the same for a start without the cluster's API."""
    guest_report = _File("runtime", "guest.json")
    """Report about a virtual machine's properties; exists on virtual machines only."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Paths":
        """Return the paths that APPLIANCE_CONFIG, _RUNTIME_DIR, _STATE_DIR and the others give."""
        given = {
            "config": environment.get(CONFIG_VARIABLE),
            "runtime": environment.get(RUNTIME_VARIABLE),
            "state": environment.get(STATE_VARIABLE),
            "keepalived": environment.get(KEEPALIVED_VARIABLE),
        }
        places = {name: Path(value) for name, value in given.items() if value}
        return cls(
            **places,
            haproxy=_several(environment.get(HAPROXY_VARIABLE, "")),
            reload_sockets=_several(environment.get(RELOAD_SOCKETS_VARIABLE, "")),
        )

    def environment(self) -> dict[str, str]:
        """Return the variables that give a child these paths; "" for an absent one."""
        return {
            CONFIG_VARIABLE: str(self.config),
            RUNTIME_VARIABLE: str(self.runtime),
            STATE_VARIABLE: str(self.state),
            HAPROXY_VARIABLE: ":".join(map(str, self.haproxy)),
            KEEPALIVED_VARIABLE: str(self.keepalived or ""),
            RELOAD_SOCKETS_VARIABLE: ":".join(map(str, self.reload_sockets)),
        }

    def absolute(self) -> "Paths":
        """Return the same paths for a process with another working directory."""
        return Paths(
            config=self.config.absolute(),
            runtime=self.runtime.absolute(),
            state=self.state.absolute(),
            haproxy=tuple(each.absolute() for each in self.haproxy),
            keepalived=self.keepalived.absolute() if self.keepalived else None,
            reload_sockets=tuple(each.absolute() for each in self.reload_sockets),
        )

    @property
    def operators_files(self) -> tuple[Path, ...]:
        """The operator's files that are named outside of our YAML."""
        return (self.config, *self.haproxy, *([self.keepalived] if self.keepalived else []))

    @property
    def supervisorctl(self) -> str:
        """The command for our supervisord, ready to paste."""
        return f"supervisorctl -s unix://{self.absolute().supervisor_socket}"

    def below(self, root: Path) -> "Paths":
        """Return the same three places in a file system below `root`."""
        moved = (root / each.relative_to(each.anchor) for each in (self.config, self.runtime, self.state))
        config, runtime, state = moved
        return Paths(config=config, runtime=runtime, state=state)

    def control(self, program: str) -> Path:
        """Return the control socket of a program."""
        return self.runtime / f"{program}.control"

    def event_board(self, program: str) -> Path:
        """Return the board with the events of a program."""
        return self.runtime / f"{program}.events"

    def heartbeat(self, program: str) -> Path:
        """Return the heartbeat of a program."""
        return self.runtime / f"{program}.heartbeat"

    def snapshot(self, number: int) -> Path:
        """Return the file of a snapshot by number, accepted or only proposed."""
        return self.runtime / "snapshots" / f"{number}.json"

    def ended_workers(self, program: str) -> Path:
        """Return the file with the counters of a proxy's ended workers."""
        return self.runtime / f"{program}.ended-workers.json"

    def worker_control(self, program: str, generation: int, index: int) -> Path:
        """Return the control socket of one worker."""
        return self.runtime / f"worker-{program}-{generation}-{index}.control"

    def worker_board(self, program: str, generation: int, index: int) -> Path:
        """Return the board of one worker."""
        return self.runtime / f"worker-{program}-{generation}-{index}.board"

    def worker_events(self, program: str, generation: int, index: int) -> Path:
        """Return the board with the events of one worker."""
        return self.runtime / f"worker-{program}-{generation}-{index}.events"

    def worker_heartbeat(self, program: str, generation: int, index: int) -> Path:
        """Return the heartbeat of one worker."""
        return self.runtime / f"worker-{program}-{generation}-{index}.heartbeat"


def _several(text: str) -> tuple[Path, ...]:
    return tuple(Path(each) for each in text.split(":") if each)
