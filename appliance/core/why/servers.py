"""Why a server is up, down, in drain or maint, or gets less than its share."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from appliance.core.status.pools import health_records
from appliance.core.status.quantities import duration
from appliance.core.status.status import PoolStatus, ServerStatus
from appliance.core.why.check_sentences import count, last_check, next_check
from appliance.core.why.explanation import (
    Change,
    Decider,
    Evidence,
    Explanation,
    Kind,
    circumstances,
    health_circumstances,
)
from appliance.model.check_results import CheckResult
from appliance.model.server_states import AdminState, HealthVerdict, ServerState
from appliance.model.server_weights import asked_weight
from appliance.model.snapshot.pools import OnDown, OnUp, Pool, Server
from appliance.wire.boards.health_board import ServerHealthRecord

_SESSIONS: Final = {
    OnDown.CLOSE_SESSIONS: "Sessions on it were closed (on_down: close-sessions).",
    OnDown.KEEP: "Sessions on it go on (on_down: keep).",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCase:
    """One server with its data; `record` is None if `health` has written nothing of it."""

    pool: Pool
    server: Server
    pool_status: PoolStatus
    status: ServerStatus
    record: ServerHealthRecord | None
    evidence: Evidence

    @property
    def name(self) -> str:
        """Return the name as commands take it."""
        return f"{self.pool.name}/{self.server.name}"

    @property
    def weight(self) -> float:
        """Return the full weight, without slow start: the operator's, or the configured one."""
        return asked_weight(self.server.weight, self.record.operator_weight if self.record else None)


def case(pool: Pool, server: Server, evidence: Evidence) -> ServerCase:
    """Return the data of a server of the snapshot."""
    pool_status = next(each for each in evidence.status.pools if each.name == pool.name)
    return ServerCase(
        pool=pool,
        server=server,
        pool_status=pool_status,
        status=next(each for each in pool_status.servers if each.name == server.name),
        record=health_records(evidence.observations).get((pool.name, server.name)),
        evidence=evidence,
    )


def explain_server(pool: Pool, server: Server, evidence: Evidence) -> Explanation:
    """Return why a server is in its state."""
    about = case(pool, server, evidence)
    return Explanation(
        kind=Kind.SERVER,
        name=about.name,
        state=about.status.state or "unknown",
        since=about.status.since or None,
        decided_by=decider(about),
        answer=answer(about),
        reasons=tuple(_reasons(about)),
        circumstances=(*health_circumstances(evidence), *circumstances(evidence)),
        changes=tuple(_changes(about)),
    )


def decider(about: ServerCase) -> Decider:
    """Return who has decided the server's state."""
    if about.record is None:
        return Decider.NOBODY
    if about.status.state in (ServerState.MAINT, ServerState.DRAIN):
        return Decider.OPERATOR
    unwanted = about.weight == 0 and about.status.state is ServerState.UP
    if unwanted and about.record.operator_weight is not None:
        return Decider.OPERATOR
    if about.server.check is None or unwanted:
        return Decider.CONFIGURATION
    if about.record.result is CheckResult.UNCHECKED:
        return Decider.CONFIGURATION if about.record.verdict is not HealthVerdict.UNKNOWN else Decider.NOBODY
    return Decider.CHECK


def answer(about: ServerCase) -> str:
    """Return the sentence with its state and the reason."""
    since = about.evidence.since(about.status.since)
    match about.status.state:
        case ServerState.MAINT:
            return f"{about.name} is in maint{since}: an operator has taken it out of service."
        case ServerState.DRAIN:
            return f"{about.name} is in drain{since}: an operator lets it get no new connections."
        case ServerState.DOWN:
            return f"{about.name} is down{since}: {_why_down(about)}."
        case ServerState.CHECKING:
            return f"{about.name} is not judged yet: its first check has not ended."
        case ServerState.UP:
            return f"{about.name} is up{since}{_why_up(about)}."
        case _:
            return f"There is no state of {about.name}: no program of the appliance runs."


def _why_down(about: ServerCase) -> str:
    check, record = about.server.check, about.record
    if record is None or check is None or record.result is CheckResult.UNCHECKED:
        return f"so it is presumed until a check has ended (init: {check.init if check else 'down'})"
    return "its health checks fail" if not _passes(record) else "its health checks have passed too few times"


def _why_up(about: ServerCase) -> str:
    if about.server.check is None:
        return ", and so it is always: it is not checked"
    if about.record is not None and about.record.result is CheckResult.UNCHECKED:
        return f": so it is presumed until a check has ended (init: {about.server.check.init})"
    if about.record is not None and not _passes(about.record):
        return ", and its last checks have failed"
    return ": its health checks pass"


def _passes(record: ServerHealthRecord) -> bool:
    return record.result in (CheckResult.L4OK, CheckResult.L6OK, CheckResult.L7OK)


def _reasons(about: ServerCase) -> Iterator[str]:
    check, record = about.server.check, about.record
    if record is not None and check is not None and about.status.state is not ServerState.MAINT:
        yield last_check(record, about.server, check, about.evidence)
        yield from count(record, check)
    yield from _operator(about)
    if about.status.state is ServerState.DOWN:
        yield from _sessions_when_down(about)
    if about.status.state is ServerState.UP:
        yield from _share(about)
    yield from _clients(about)
    yield from _address(about)


def _operator(about: ServerCase) -> Iterator[str]:
    admin = about.record.admin if about.record else AdminState.READY
    if admin is AdminState.MAINT:
        yield "It gets no connections and is not checked; that outlives reloads and restarts."
    if admin is AdminState.DRAIN and about.status.state is ServerState.DOWN:
        yield "Besides, an operator has put it into drain: it gets no connections when it is up again."
    if about.status.operator_weight is not None:
        yield (
            f"An operator has set its weight to {about.status.operator_weight}, where the configuration says"
            f" {about.server.weight}; that outlives reloads and restarts."
        )
    if about.status.state is ServerState.DRAIN:
        yield f"{_sessions(about.status.current)}; its checks pass, and are made as ever."


def _sessions_when_down(about: ServerCase) -> Iterator[str]:
    if about.pool.on_down is not OnDown.AUTO:
        yield _SESSIONS[about.pool.on_down]
    elif about.record is not None and about.record.unreachable:
        yield "Nothing answers there, so sessions on it were closed (on_down: auto)."
    else:
        yield "It still answers, so sessions on it go on (on_down: auto)."
    if panics(about.pool, about.pool_status, about.evidence):
        yield f"It gets connections nevertheless: too few servers of {about.pool.name} are up (panic)."


def takes_new(server: ServerStatus) -> bool:
    """Return whether a server is up and has a weight, and so takes new connections."""
    return server.state is ServerState.UP and bool(server.effective_weight)


def used_backups(pool: Pool, status: PoolStatus) -> list[ServerStatus]:
    """Return the backups that get the connections of a pool while no other server of it is up."""
    backups = [each for each in status.servers if each.backup and takes_new(each)]
    return backups if pool.all_backups else backups[:1]


def panics(pool: Pool, status: PoolStatus, evidence: Evidence) -> bool:
    """Return whether so few servers of a pool are up that their checks do not count (core.balancing)."""
    records = health_records(evidence.observations)
    admins = {each.name: records.get((pool.name, each.name)) for each in pool.servers}
    wanted = [
        each
        for each in status.servers
        if not each.backup
        and each.state is not ServerState.CHECKING
        and (record := admins[each.name]) is not None
        and record.admin is AdminState.READY
        and asked_weight(each.weight, record.operator_weight)
    ]
    up = sum(each.state is ServerState.UP for each in wanted)
    return up < len(wanted) * pool.panic


def _share(about: ServerCase) -> Iterator[str]:
    effective = about.status.effective_weight
    if about.weight == 0:
        yield "Its weight is 0: it gets no new connections (weight)."
    elif effective is not None and effective < about.weight:
        part = effective / about.weight
        left = about.pool.slow_start * (1 - part)
        yield (
            f"It has come back and gets {part:.0%} of its share so far, the whole of it in about"
            f" {duration(left)} (slow_start: {duration(about.pool.slow_start)})."
        )
    if about.server.backup:
        yield _backup(about)
        if about.pool.on_up is OnUp.CLOSE_BACKUP_SESSIONS:
            yield "When another server comes up, its sessions are closed (on_up: close-backup-sessions)."
    limit = about.server.max_connections
    if 0 < limit <= about.status.current:
        yield f"It has {about.status.current} of {limit} connections: further ones wait (max_connections)."


def _backup(about: ServerCase) -> str:
    used = used_backups(about.pool, about.pool_status)
    if not used or any(takes_new(each) for each in about.pool_status.servers if not each.backup):
        return "It is a backup: it gets connections only while no other server of the pool is up."
    if about.status in used:
        return "It is a backup, and is used now: of the servers that are no backups none is up."
    return (
        f"It is a backup, and stands behind {used[0].name}: only the first backup that is up is used"
        " (all_backups: false)."
    )


def _clients(about: ServerCase) -> Iterator[str]:
    check = about.server.check
    if about.status.failed and check is not None and check.error_limit:
        yield (
            f"{about.status.failed} connects for clients failed so far. {check.error_limit} in a row have the"
            " server checked at once, and only that check decides (error_limit)."
        )


def _address(about: ServerCase) -> Iterator[str]:
    if about.record is not None and about.status.resolved is None:
        yield f"The name {about.server.host} has no address at present, so nothing can be sent there."
    if about.server.discovered:
        held = _held_by(about)
        yield f"It was found in the cluster{held}."


def _held_by(about: ServerCase) -> str:
    for source in about.evidence.status.discovery:
        for found in source.servers:
            if about.pool.name in source.pools and found.name == about.server.name:
                gone = f", which no longer lists it: it is kept ({source.hold})" if found.held else ""
                return f" ({source.name}{gone})"
    return ""


def _changes(about: ServerCase) -> Iterator[Change]:
    record, check = about.record, about.server.check
    if record is None:
        yield Change(text="See what runs", command="appliance status")
        return
    if record.admin is not AdminState.READY:
        yield Change(text="Let its checks decide again", command=f"appliance ready {about.name}")
    if about.status.state is ServerState.DOWN and check is not None:
        needed = check.rise - record.streak if _passes(record) else check.rise
        due = next_check(record, check, about.evidence)
        yield Change(text=f"{needed} more passed checks in a row take it up; {due}")
    if record.operator_weight is not None:
        yield Change(text="Give it the configured weight back", command=f"appliance weight {about.name} 100%")
    if about.status.state is ServerState.DRAIN and about.status.current:
        yield Change(
            text="End the sessions that are left",
            command=f"appliance sessions kill --server {about.name}",
        )
    if about.status.state is ServerState.UP and record.admin is AdminState.READY:
        yield Change(text="Give it no new connections", command=f"appliance drain {about.name}")


def _sessions(number: int) -> str:
    return "1 session on it continues" if number == 1 else f"{number} sessions on it continue"
