"""What `appliance status` shows, as values: the fields and their names are the keys of its JSON.

Times are Unix seconds, durations seconds. Counters are sums over all workers, including ended ones, since the
runtime directory was made: they never decrease.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import msgspec

from appliance.core.status.problem_kinds import StatusProblem
from appliance.model.check_results import CheckResult
from appliance.model.guest.report import GuestReport
from appliance.model.server_states import ServerState
from appliance.model.take_overs import TakeOvers
from appliance.wire.lines.announce_status import NeighborStatus, SharedIpStatus
from appliance.wire.lines.control import AnswerProblem
from appliance.wire.lines.discovery_status import SourceStatus
from appliance.wire.lines.linger_status import OtherNode


class ProgramState(StrEnum):
    """Supervisord's words, and two of ours: it cannot be asked, or does not know the program."""

    STOPPED = "stopped"
    STARTING = "starting"
    RUNNING = "running"
    BACKOFF = "backoff"
    STOPPING = "stopping"
    EXITED = "exited"
    FATAL = "fatal"
    UNKNOWN = "unknown"
    GONE = "gone"


class GenerationPhase(StrEnum):
    """What a generation of workers is doing."""

    READY = "ready"
    ACCEPTING = "accepting"
    DRAINING = "draining"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramStatus:
    """One supervised program. `expected` is whether the accepted configuration needs it.

    `generation` is a proxy's accepting one, `workers` how many of it accept, None for programs without
    workers. `reason` is what is wrong, or why it does not run.
    """

    name: str
    state: ProgramState
    expected: bool
    ok: bool
    pid: int | None
    uptime: float | None
    generation: int | None
    workers: int | None
    configuration: int | None
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontendStatus:
    """One frontend; exactly one of `pool` and `respond` is set.

    `pools` are all that its clients may reach, including by `clients` and `sni`. `full` is whether it has as
    many connections as `max_connections` allows: new ones wait in the backlog.
    """

    name: str
    program: str
    binds: tuple[str, ...]
    pool: str | None
    respond: str | None
    max_connections: int
    full: bool
    current: int
    total: int
    denied: int
    failed: int
    bytes_in: int
    bytes_out: int
    pools: tuple[str, ...] = ()  # optional, because a program of an older version sends none


class CheckStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The last check of a server.

    `status` is the HTTP status, None without one. `streak` counts results equal to this one in a row,
    `failed` all failed checks.
    """

    result: CheckResult
    status: int | None
    detail: str
    duration: float
    ended_at: float
    streak: int
    failed: int


class ServerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One server of a pool. A struct, as CheckStatus is, for the same reason as ServerCounters.

    `resolved` is the literal address of its name, None without one. `check` is None before the first check.
    `weight` is the configured one and `operator_weight` the operator's instead, such as `50%`, None for no
    change. `state` is None if no program of the appliance runs that could know it.
    """

    name: str
    address: str
    resolved: str | None
    state: ServerState | None
    since: float | None
    backup: bool
    weight: int
    operator_weight: str | None
    effective_weight: float | None
    check: CheckStatus | None
    current: int
    total: int
    failed: int
    queued: int
    bytes_in: int
    bytes_out: int
    given_up: int
    retried: int
    redispatched: int
    client_aborts: int
    server_aborts: int
    connected: int
    ended: int
    queue_seconds: float
    connect_seconds: float
    session_seconds: float
    longest_queue: float
    longest_connect: float
    longest_session: float
    downs: int
    down_seconds: float
    failed_up: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolStatus:
    """One pool. `up` is how many of its servers are up; `ok` is false for a pool in use without any.

    `downs` is how often it lost its last server, `down_seconds` the sum of these outages without the present
    one, and `down_since` when the present one began, Unix seconds.
    """

    name: str
    balance: str
    in_use: bool
    ok: bool
    up: int
    current: int
    total: int
    queued: int
    downs: int
    down_seconds: float
    down_since: float | None
    servers: tuple[ServerStatus, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualIpStatus:
    """One virtual IP. Fields from the program vrrp are None if it does not answer: `state` and others.

    `active` is whether this node serves it, `active_peer` the address of the router that does instead, if one
    advertises. `base` is the configured priority, `priority` the one with the weights of tracks.
    """

    name: str
    addresses: tuple[str, ...]
    interface: str
    router_id: int
    version: int
    sync_group: str | None
    state: str | None
    since: float | None
    active: bool | None
    active_peer: str | None
    priority: int | None
    base: int
    yielded: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BgpStatus:
    """How shared IPs are announced: by `engine` from the kernel's tables `serve` and `drain`.

    `trouble` is why something is not as configured, empty if all is. `neighbors` are the sessions of BIRD,
    none with the engine `table`.
    """

    engine: str
    serve: int
    drain: int
    trouble: str
    neighbors: tuple[NeighborStatus, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RedirectedFrontendStatus:
    """The redirect of one frontend: new connections to `sources` come to it while `state` is `on`.

    Fields from the program redirect are None if it does not answer: `state` (off, on, stands-back, failed),
    `since` and `reason`.
    """

    name: str
    sources: tuple[str, ...]
    state: str | None
    since: float | None
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConnections:
    """Connections that a generation has open to one server."""

    pool: str
    server: str
    connections: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationStatus:
    """One generation of a proxy's workers; `drain_deadline` is None while it does not drain.

    `compiled`: the data path of every worker runs as extension modules, and not as plain Python.
    """

    program: str
    generation: int
    phase: GenerationPhase
    pids: tuple[int, ...]
    configuration: int
    started_at: float
    sessions: int
    drain_deadline: float | None
    holds: tuple[ServerConnections, ...]
    compiled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DegradedStart:
    """The appliance runs its last good configuration because of these errors in the operator's file."""

    since: float
    errors: tuple[AnswerProblem, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The whole status. `ok` is true when `problems` is empty; `degraded` is None after a normal start.

    `version` is that of the running programs, None if `reload` does not report it, and `digest` the SHA-256
    of the operator's files that they use. `supervisor` is None if
    supervisord answers, otherwise why it does not. `ended` counts by reason how connections ended.
    `shared_ips` have the state "" if the program announce does not answer; `bgp` is None if it is not
    configured. `discovery` are the sources of servers discovered in the cluster. `guest` is the result of
    the properties of a virtual machine, None elsewhere. `set_aside` are damaged files of ours under their
    present names, to be examined and removed. `left_out` is what foreign files serve and the configuration
    does not, by the operator's choice. `take_overs` are the results of upgrades in place. `nodes` are the
    other nodes, as they report to `linger`.
    """

    ok: bool
    problems: tuple[StatusProblem, ...]
    at: float
    version: str | None
    configuration: int | None
    source: str | None
    cluster: str | None
    degraded: DegradedStart | None
    supervisor: str | None
    programs: tuple[ProgramStatus, ...]
    frontends: tuple[FrontendStatus, ...]
    pools: tuple[PoolStatus, ...]
    generations: tuple[GenerationStatus, ...]
    ended: Mapping[str, int]
    virtual_ips: tuple[VirtualIpStatus, ...] = ()
    shared_ips: tuple[SharedIpStatus, ...] = ()
    bgp: BgpStatus | None = None
    discovery: tuple[SourceStatus, ...] = ()
    redirects: tuple[RedirectedFrontendStatus, ...] = ()
    guest: GuestReport | None = None
    set_aside: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    take_overs: TakeOvers = field(default_factory=TakeOvers)
    nodes: tuple[OtherNode, ...] = ()
    digest: str | None = None

    def json(self) -> bytes:
        """Return it as JSON, with each problem as its sentence."""
        return msgspec.json.encode(self, enc_hook=lambda each: {StatusProblem: str}[type(each)](each))


def json_schema() -> dict[str, object]:
    """Return the schema of `Status.json`."""
    text: dict[type, dict[str, object]] = {StatusProblem: {"type": "string"}}
    return msgspec.json.schema(Status, schema_hook=lambda kind: text[kind])
