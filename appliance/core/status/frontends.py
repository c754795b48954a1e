"""The frontends in a status, with the sums of the counters of all workers and the kernel."""

from collections.abc import Iterator, Mapping, Sequence

from appliance.core.status.observations import Observations
from appliance.core.status.status import (
    FrontendStatus,
)
from appliance.model.snapshot.frontends import Frontend, Group
from appliance.model.snapshot.snapshot import Snapshot
from appliance.wire.boards.worker_board import FrontendCounters
from appliance.wire.lines.forward_status import ForwardStatus


def frontend_statuses(snapshot: Snapshot, observations: Observations) -> Iterator[FrontendStatus]:
    """Yield every configured frontend; its counters are those of all workers and the kernel."""
    counters = _by_name(observations)
    for group in snapshot.groups:
        for frontend in group.frontends:
            yield _frontend(frontend, group, counters.get((group.program, frontend.name), ()))


def _by_name(observations: Observations) -> Mapping[tuple[str, str], list[FrontendCounters]]:
    found: dict[tuple[str, str], list[FrontendCounters]] = {}
    counted = [(each.program, each.frontends) for each in observations.workers]
    counted += [(program, each.frontends) for program, each in observations.ended.items()]
    forward = observations.answer(ForwardStatus)
    counted += [(each.program, each.frontends) for each in (forward.groups if forward else ())]
    for program, frontends in counted:
        for each in frontends:
            found.setdefault((program, each.name), []).append(each)
    return found


def _frontend(frontend: Frontend, group: Group, parts: Sequence[FrontendCounters]) -> FrontendStatus:
    current = sum(part.current for part in parts)
    return FrontendStatus(
        name=frontend.name,
        program=group.program,
        binds=tuple(map(str, frontend.binds)),
        pool=frontend.pool,
        pools=frontend.pools,
        respond=frontend.respond,
        max_connections=frontend.max_connections,
        # Each worker counts its own connections: only their sum compares to the limit.
        full=0 < frontend.max_connections <= current,
        current=current,
        total=sum(part.total for part in parts),
        denied=sum(part.denied for part in parts),
        failed=sum(part.failed for part in parts),
        bytes_in=sum(part.bytes_in for part in parts),
        bytes_out=sum(part.bytes_out for part in parts),
    )
