"""What is wrong with the virtual IPs of this node, by the status from `vrrp`."""

from collections.abc import Iterator

from appliance.core.status.problem_kinds import ProblemKind, StatusProblem
from appliance.wire.lines.vrrp_status import RouterStatus, VrrpStatus


def troubles(status: VrrpStatus) -> Iterator[StatusProblem]:
    """Yield each problem of the virtual IPs."""
    if status.missing:
        yield StatusProblem(ProblemKind.CAPABILITIES, detail=" and ".join(status.missing))
    if not status.takes_part:
        yield StatusProblem(ProblemKind.LEFT_TO_OTHERS)
    for router in status.routers:
        for trouble in _troubles(router, status):
            yield StatusProblem(ProblemKind.VIRTUAL_IP, router.name, detail=trouble)


def _troubles(router: RouterStatus, status: VrrpStatus) -> Iterator[str]:
    if router.state == "fault" and not status.missing:  # which is the reason, and reported already
        yield f"is in fault: {'; '.join(router.fault_reasons) or 'no reason is given'}"
    if router.is_active and not router.held:
        yield "is active, but its addresses are not on the interface"
    for trouble in router.route_troubles:
        yield f"is active here without {trouble}"
    for rival in router.rivals:
        yield f"is active here and on {rival.peer} (priority {rival.priority}) at the same time"
    for conflict in router.conflicts:
        about = f": {conflict.detail}" if conflict.detail else ""
        who = f"{conflict.peer or 'an unknown machine'} ({conflict.kind}){about}"
        besides = router.is_active and not conflict.obeyed
        yield f"is active here, in conflict with {who}" if besides else f"has a conflict with {who}"
