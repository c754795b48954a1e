"""Our own metrics: reloads, generations, ends of connections, checks, virtual IPs."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from appliance.core.status.connection_room import ConnectionRoom
from appliance.core.status.observations import Observations
from appliance.core.status.status import GenerationPhase, Status, VirtualIpStatus
from appliance.model.end_reasons import EndReason
from appliance.model.server_states import ServerState
from appliance.wire.boards.ended_workers import EndedWorkers
from appliance.wire.boards.health_board import CHECK_BOUNDS
from appliance.wire.boards.vrrp_board import VrrpBoard
from appliance.wire.boards.worker_board import CONNECT_BOUNDS, WorkerBoard
from appliance.wire.exposition import Histogram, Metric, MetricKind, Sample, counter, gauge, labels
from appliance.wire.lines.linger_status import LingerStatus, OtherNode
from appliance.wire.lines.migrate_status import MigrateStatus
from appliance.wire.lines.reload_status import ReloadStatus
from appliance.wire.lines.vrrp_status import VrrpStatus

_REFUSALS: Final = (
    EndReason.DENIED,
    EndReason.NO_SERVER,
    EndReason.QUEUE_FULL,
    EndReason.QUEUE_TIMEOUT,
    EndReason.CONNECT_REFUSED,
    EndReason.CONNECT_TIMEOUT,
    EndReason.CONNECT_FAILED,
    EndReason.NO_PORTS,
    EndReason.NO_DESCRIPTORS,
)


def appliance_metrics(
    status: Status, observations: Observations, *, configuration_hash: str | None
) -> Iterator[Metric]:
    """Yield the metrics; `configuration_hash` is equal on appliances with the same configuration."""
    yield from _whole(status, configuration_hash)
    yield from _reloads(status, observations)
    yield from _generations(status, observations)
    yield from _pools(status)
    yield _ends(status)
    yield _refused(status)
    yield _check_times(observations)
    yield _reused(observations)
    yield from _connect_times(status, observations)
    yield from _virtual_ips(status.virtual_ips, observations)
    linger = observations.answer(LingerStatus)
    if linger is not None and linger.shared:
        yield _strays(linger)
    migrate = observations.answer(MigrateStatus)
    if migrate is not None:
        yield _migrated(migrate)
        yield _staying(migrate)
    if status.nodes:
        yield from _nodes(status.nodes)
    if observations.connection_room is not None:
        yield from _room(observations.connection_room)


def _strays(linger: LingerStatus) -> Metric:
    about = "Packets of shared addresses that belong to no connection of this node, by what became of them."
    counts = [(labels(kind=kind), count) for kind, count in sorted(linger.strays.items())]
    return _counter("linger_strays", about, counts)


def _migrated(migrate: MigrateStatus) -> Metric:
    about = "Sessions that were given to other nodes, taken from them, and lost between the two."
    counts = (("given", migrate.given), ("taken", migrate.taken), ("lost", migrate.lost))
    return _counter("migrated_sessions", about, [(labels(result=result), count) for result, count in counts])


def _staying(migrate: MigrateStatus) -> Metric:
    about = "Sessions of addresses that this node has left which do not move, by why."
    stay = [(each.address, *found) for each in migrate.departures for found in sorted(each.stay.items())]
    return _gauge(
        "staying_sessions", about, [(labels(address=at, reason=why), count) for at, why, count in stay]
    )


def _nodes(nodes: Sequence[OtherNode]) -> Iterator[Metric]:
    named = [(labels(node=each.name), each) for each in nodes]
    about = "1 while another node of the cluster reports its release and configuration, 0 after it stopped."
    yield _gauge("other_node_heard", about, [(name, int(not each.silent)) for name, each in named])
    about = "1 if another node runs another configuration than this one."
    differs = [(name, int(each.differs_since is not None)) for name, each in named]
    yield _gauge("other_node_configuration_differs", about, differs)
    about = "Servers that another node finds up and this one down, or the opposite."
    yield _gauge("other_node_servers_differ", about, [(name, len(each.judged)) for name, each in named])


def _room(room: ConnectionRoom) -> Iterator[Metric]:
    about = "Connections that the kernel tracks, for `linger` and `forward: kernel`."
    yield _gauge("tracked_connections", about, [("", room.used)])
    about = "Maximum of connections that the kernel tracks; it drops new ones beyond that. 0: no limit."
    yield _gauge("tracked_connections_limit", about, [("", room.limit)])


def _gauge(name: str, about: str, samples: Sequence[Sample]) -> Metric:
    return gauge(f"appliance_{name}", about, samples)


def _counter(name: str, about: str, samples: Sequence[Sample]) -> Metric:
    return counter(f"appliance_{name}", about, samples)


def _whole(status: Status, configuration_hash: str | None) -> Iterator[Metric]:
    yield _gauge("ok", "1 if `appliance status` finds no problem.", [("", int(status.ok))])
    yield _gauge(
        "problems", "Number of problems that `appliance status` finds.", [("", len(status.problems))]
    )
    if status.version:
        yield _gauge("build_info", "The running version.", [(labels(version=status.version), 1)])
    if status.configuration is not None and configuration_hash is not None:
        given = labels(number=str(status.configuration), sha256=configuration_hash)
        yield _gauge("configuration_info", "The accepted configuration and its hash.", [(given, 1)])
    about = "1 if the last good configuration is used because the file has errors."
    yield _gauge("degraded", about, [("", int(status.degraded is not None))])
    about = "State files of the appliance that were damaged and set aside."
    yield _gauge("files_set_aside", about, [("", len(status.set_aside))])
    yield from _take_overs(status)


def _take_overs(status: Status) -> Iterator[Metric]:
    found = status.take_overs
    about = "Take-overs by another `appliance run`, by result, since the last start that was not one."
    counts = [(labels(result="done"), found.done), (labels(result="failed"), found.failed)]
    yield _counter("take_overs", about, counts)
    if found.last:
        about = "Unix time at which this appliance took over from another one."
        yield _gauge("last_take_over_timestamp_seconds", about, [("", found.last.when)])


def _reloads(status: Status, observations: Observations) -> Iterator[Metric]:
    accepted = observations.accepted_at
    if accepted is not None:
        about = "Unix time at which the current configuration was accepted."
        yield _gauge("configuration_accepted_timestamp_seconds", about, [("", accepted)])
        age = max(0.0, status.at - accepted)
        yield _gauge(
            "configuration_age_seconds", "Seconds since the current configuration was accepted.", [("", age)]
        )
    answer = observations.answer(ReloadStatus)
    if answer is None:
        return
    counts = [(labels(result=result), count) for result, count in sorted(answer.reloads.items())]
    about = "Reloads by result; refused-again counts refused automatic retries."
    yield _counter("reloads", about, counts)
    about = "1 unless the last reload was refused or not completed."
    yield _gauge("last_reload_successful", about, [("", int(answer.last is None or answer.last.ok))])
    about = "1 while a reload that was refused for now is retried automatically."
    yield _gauge("reload_retry_pending", about, [("", int(answer.again_in is not None))])
    if answer.last is not None:
        about = "Unix time at which the last reload ended."
        yield _gauge("last_reload_timestamp_seconds", about, [("", answer.last.at)])


def _generations(status: Status, observations: Observations) -> Iterator[Metric]:
    named = [
        (labels(program=each.program, generation=str(each.generation), phase=each.phase.value), each)
        for each in status.generations
    ]
    yield _gauge(
        "generation_workers", "Workers of a generation.", [(name, len(each.pids)) for name, each in named]
    )
    yield _gauge(
        "generation_sessions", "Sessions of a generation.", [(name, each.sessions) for name, each in named]
    )
    about = "1 if the workers of a generation move connections with compiled code, 0 for plain Python."
    yield _gauge("generation_compiled", about, [(name, int(each.compiled)) for name, each in named])
    draining = dict.fromkeys((each.name for each in status.programs if each.workers is not None), 0)
    for each in status.generations:
        if each.phase is GenerationPhase.DRAINING:
            draining[each.program] = draining.get(each.program, 0) + 1
    about = "Generations that are draining."
    yield _gauge("draining_generations", about, [(labels(program=name), n) for name, n in draining.items()])
    about = "Connections of draining generations to a server."
    yield _gauge("draining_connections", about, list(_held(status)))
    about = "Workers that have exited, for any reason."
    ended = [(labels(program=name), each.workers) for name, each in observations.ended.items()]
    yield _counter("workers_ended", about, ended)


def _held(status: Status) -> Iterator[Sample]:
    for each in status.generations:
        if each.phase is GenerationPhase.DRAINING:
            for held in each.holds:
                given = {"program": each.program, "generation": str(each.generation)}
                yield labels(**given, pool=held.pool, server=held.server), held.connections


def _pools(status: Status) -> Iterator[Metric]:
    pools = [(labels(pool=each.name), each) for each in status.pools]
    yield _gauge("pool_servers", "Servers of a pool.", [(name, len(each.servers)) for name, each in pools])
    yield _gauge(
        "pool_servers_up", "Servers of a pool that are up.", [(name, each.up) for name, each in pools]
    )
    yield _gauge(
        "pool_queue", "Connections that wait for a server.", [(name, each.queued) for name, each in pools]
    )
    about = "1 for a server without a check result."
    unjudged = [
        (labels(pool=pool.name, server=each.name), int(each.state is ServerState.CHECKING))
        for pool in status.pools
        for each in pool.servers
    ]
    yield _gauge("server_unjudged", about, unjudged)
    about = "1 for a frontend that has reached its connection limit."
    full = [(labels(frontend=each.name), int(each.full)) for each in status.frontends]
    yield _gauge("frontend_full", about, full)


def _ends(status: Status) -> Metric:
    about = "Ends of connections, refused connections and retries, by reason."
    return _counter(
        "connection_ends",
        about,
        [(labels(reason=name), count) for name, count in sorted(status.ended.items())],
    )


def _refused(status: Status) -> Metric:
    about = "Client connections that got no server, by reason."
    return _counter(
        "connections_refused",
        about,
        [(labels(reason=reason.value), status.ended.get(reason.value, 0)) for reason in _REFUSALS],
    )


def _check_times(observations: Observations) -> Metric:
    seconds: dict[str, float] = {}
    counts: dict[str, tuple[int, ...]] = {}
    for each in observations.health.servers if observations.health else ():
        seconds[each.pool] = seconds.get(each.pool, 0.0) + each.check_seconds
        counts[each.pool] = _added(counts.get(each.pool), each.check_times)
    return Metric(
        name="appliance_check_duration_seconds",
        kind=MetricKind.HISTOGRAM,
        help="Duration of the checks of a pool's servers.",
        histograms=[
            Histogram(labels={"pool": pool}, bounds=CHECK_BOUNDS, counts=each, sum=seconds[pool])
            for pool, each in counts.items()
        ],
    )


def _reused(observations: Observations) -> Metric:
    reused: dict[str, int] = {}
    for each in observations.health.servers if observations.health else ():
        reused[each.pool] = reused.get(each.pool, 0) + each.reused
    about = "Checks of a pool's servers that reused a connection (`reuse`)."
    return _counter("checks_reused", about, [(labels(pool=pool), each) for pool, each in reused.items()])


def _connect_times(status: Status, observations: Observations) -> Iterator[Metric]:
    counts: dict[str, tuple[int, ...]] = {}
    everybody: list[WorkerBoard | EndedWorkers] = [*observations.workers, *observations.ended.values()]
    for each in everybody:
        for times in each.pools:
            counts[times.pool] = _added(counts.get(times.pool), times.connects)
    seconds = {pool.name: sum(each.connect_seconds for each in pool.servers) for pool in status.pools}
    yield Metric(
        name="appliance_connect_duration_seconds",
        kind=MetricKind.HISTOGRAM,
        help="Duration of connects to a pool's servers.",
        histograms=[
            Histogram(labels={"pool": pool}, bounds=CONNECT_BOUNDS, counts=counts[pool], sum=each)
            for pool, each in seconds.items()
            if pool in counts
        ],
    )


def _added(one: Iterable[int] | None, other: tuple[int, ...]) -> tuple[int, ...]:
    return other if one is None else tuple(map(sum, zip(one, other, strict=True)))


def _virtual_ips(virtual_ips: Sequence[VirtualIpStatus], observations: Observations) -> Iterator[Metric]:
    if not virtual_ips:
        return
    named = [(labels(virtual_ip=each.name), each) for each in virtual_ips]
    about = "1 if this node is active for a virtual IP."
    yield _gauge("virtual_ip_active", about, [(name, int(bool(each.active))) for name, each in named])
    about = "1 if this node receives another node's advertisements as active."
    heard = [(name, int(each.active_peer is not None)) for name, each in named]
    yield _gauge("virtual_ip_active_elsewhere", about, heard)
    priorities = [(name, each.priority) for name, each in named if each.priority is not None]
    yield _gauge("virtual_ip_priority", "Priority, including the weights of tracks.", priorities)
    vrrp = observations.answer(VrrpStatus)
    if vrrp is not None:
        yield from _heard(vrrp)
    if observations.vrrp_board is not None:
        yield from _counted(observations.vrrp_board)


def _heard(vrrp: VrrpStatus) -> Iterator[Metric]:
    routers = [(labels(virtual_ip=each.name), each) for each in vrrp.routers]
    about = "Other nodes that are active at the same time: split brain."
    yield _gauge("virtual_ip_rivals", about, [(name, len(each.rivals)) for name, each in routers])
    about = "Conflicts over a router id or an address."
    yield _gauge("virtual_ip_conflicts", about, [(name, len(each.conflicts)) for name, each in routers])


def _counted(board: VrrpBoard) -> Iterator[Metric]:
    """Yield the counters of vrrp from its board, which it continues after a restart."""
    routers = [(labels(virtual_ip=each.name), each) for each in board.routers]
    about = "State changes of a virtual IP on this node."
    yield _counter("virtual_ip_transitions", about, [(name, each.transitions) for name, each in routers])
    about = "Split brains: times that another node became active alongside this one."
    yield _counter("virtual_ip_split_brains", about, [(name, each.split_brains) for name, each in routers])
    about = "Advertisements and gratuitous ARP that could not be sent."
    yield _counter("vrrp_send_errors", about, [(name, each.send_errors) for name, each in routers])
    about = "VRRP packets that were dropped, by reason."
    yield _counter("vrrp_drops", about, list(_drops(board)))
    about = "Late wake-ups of vrrp."
    yield _counter("vrrp_late_wakeups", about, [("", board.late_wakeups)])
    about = "Longest delay of a wake-up of vrrp, in seconds."
    yield _gauge("vrrp_latest_wakeup_seconds", about, [("", board.latest_wakeup)])


def _drops(board: VrrpBoard) -> Iterator[Sample]:
    for router in board.routers:
        for reason, count in router.drops.items():
            yield labels(virtual_ip=router.name, reason=reason.value), count
