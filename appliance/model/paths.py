"""The paths of all files and sockets: three directories that can be moved, and the names in them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CONFIG_VARIABLE: Final = "APPLIANCE_CONFIG"
RUNTIME_VARIABLE: Final = "APPLIANCE_RUNTIME_DIR"
STATE_VARIABLE: Final = "APPLIANCE_STATE_DIR"
HAPROXY_VARIABLE: Final = "APPLIANCE_HAPROXY"
KEEPALIVED_VARIABLE: Final = "APPLIANCE_KEEPALIVED"
RELOAD_SOCKETS_VARIABLE: Final = "APPLIANCE_RELOAD_SOCKETS"
"""Paths of sockets, with `:` between them, as in HAPROXY_VARIABLE."""

NODE_VARIABLE: Final = "APPLIANCE_NODE"
"""Name of this node if it differs from the host's: the name in `nodes` of the configuration."""


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
    def reload_socket(self) -> Path:
        """Socket that accepts the line `reload`."""
        return self.runtime / "reload.sock"

    @property
    def supervisor_socket(self) -> Path:
        """Socket of supervisord's XML-RPC."""
        return self.runtime / "supervisor.sock"

    @property
    def supervisorctl(self) -> str:
        """The command for our supervisord, ready to paste."""
        return f"supervisorctl -s unix://{self.absolute().supervisor_socket}"

    @property
    def health_board(self) -> Path:
        """Board that `health` writes."""
        return self.runtime / "health.board"

    @property
    def health_connect_failures(self) -> Path:
        """Socket of `health`, to which workers report the servers that clients could not connect to."""
        return self.runtime / "health.doubts"

    @property
    def lock(self) -> Path:
        """File whose lock says that an appliance runs here."""
        return self.runtime / "appliance.lock"

    @property
    def succession_socket(self) -> Path:
        """Socket of supervisord for an appliance that wants to take over."""
        return self.runtime / "succession.sock"

    @property
    def take_overs(self) -> Path:
        """File with the results of take-overs; it does not exist before the first try."""
        return self.runtime / "take-overs.json"

    @property
    def accepted(self) -> Path:
        """The accepted snapshot, which every program reads."""
        return self.runtime / "accepted.json"

    @property
    def accepted_for_readers(self) -> Path:
        """The accepted snapshot without secrets, for the group of `group:`."""
        return self.runtime / "accepted-for-readers.json"

    @property
    def last_good(self) -> Path:
        """Copy of the snapshot accepted last, for a start with a broken configuration."""
        return self.state / "last-good.json"

    @property
    def history(self) -> Path:
        """Figures of the last hours, minute by minute, kept by `stats`."""
        return self.state / "history.ring"

    @property
    def operator_states(self) -> Path:
        """Servers that the operator has put in drain or maint."""
        return self.state / "operator-states.json"

    @property
    def operator_weights(self) -> Path:
        """Weights that the operator has given servers."""
        return self.state / "operator-weights.json"

    @property
    def program_starts(self) -> Path:
        """How often supervisord has started each program."""
        return self.runtime / "program-starts.json"

    @property
    def reload_counts(self) -> Path:
        """How many reloads had which result."""
        return self.runtime / "reload-counts.json"

    @property
    def events(self) -> Path:
        """Kept events of the whole appliance, as JSON lines; the older part ends with .1."""
        return self.state / "events.jsonl"

    @property
    def vrrp_board(self) -> Path:
        """Board that `vrrp` writes."""
        return self.runtime / "vrrp.board"

    @property
    def linger_lock(self) -> Path:
        """Lock of `linger`, which exists from its first start on: then it may have left something."""
        return self.runtime / "linger.lock"

    @property
    def announce_lock(self) -> Path:
        """Lock of `announce`, which exists from its first start on: then it may have left something."""
        return self.runtime / "announce.lock"

    @property
    def bird_config(self) -> Path:
        """Configuration of BIRD; it has passwords."""
        return self.runtime / "bird.conf"

    @property
    def bird_control(self) -> Path:
        """Control socket of BIRD."""
        return self.runtime / "bird.ctl"

    @property
    def bird_log(self) -> Path:
        """Log of BIRD, which it keeps short."""
        return self.runtime / "bird.log"

    @property
    def conntrackd_config(self) -> Path:
        """Configuration of conntrackd."""
        return self.runtime / "conntrackd.conf"

    @property
    def conntrackd_control(self) -> Path:
        """Control socket of conntrackd."""
        return self.runtime / "conntrackd.ctl"

    @property
    def conntrackd_lock(self) -> Path:
        """Lock file of conntrackd, which does not start while the file exists."""
        return self.runtime / "conntrackd.lock"

    @property
    def conntrackd_log(self) -> Path:
        """Log of the conntrackd that runs; the next one overwrites it."""
        return self.runtime / "conntrackd.log"

    @property
    def owned_addresses(self) -> Path:
        """Virtual addresses that this machine's `vrrp` may hold, for a start after a crash."""
        return self.runtime / "owned-addresses.json"

    @property
    def found_servers(self) -> Path:
        """Servers that `discover` has found in the cluster, for `reload`."""
        return self.runtime / "found-servers.json"

    @property
    def kept_found_servers(self) -> Path:
        """Copy of the same for a start without the cluster's API."""
        return self.state / "found-servers.json"

    @property
    def guest_report(self) -> Path:
        """Report about a virtual machine's properties; exists on virtual machines only."""
        return self.runtime / "guest.json"

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
