"""Why this node holds a virtual IP, or does not. The words are RFC 9568's: active, backup, priority."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from appliance.core.vrrp.election_messages import Cause
from appliance.core.why.explanation import Change, Decider, Evidence, Explanation, Finding, Kind, explained
from appliance.core.why.history import CAUSES
from appliance.model.messages.quoting import printable
from appliance.model.program_names import FORWARD, LINGER
from appliance.model.snapshot.virtual_router import VirtualRouter
from appliance.wire.lines.vrrp_status import PriorityPartStatus, RouterStatus, VrrpStatus

_AWAITED: Final = {
    LINGER: "linger has learnt from the active node which node has which connections",
    FORWARD: "forward has received the connections of the other nodes (`sync`)",
}


def explain_virtual_ip(router: VirtualRouter, evidence: Evidence) -> Explanation:
    """Return why a virtual IP is in its state on this node."""
    vrrp = evidence.observations.answer(VrrpStatus)
    running = vrrp.router(router.name) if vrrp else None
    if running is None:
        return explained(Kind.VIRTUAL_IP, router.name, _without_vrrp(router, evidence), evidence)
    found = replace(_found(router, running, evidence), since=running.since)
    return explained(Kind.VIRTUAL_IP, router.name, found, evidence, *_history(running, evidence))


def _without_vrrp(router: VirtualRouter, evidence: Evidence) -> Finding:
    vrrp = evidence.observations.answer(VrrpStatus)
    if vrrp is not None and not vrrp.takes_part:
        return Finding(
            state="left",
            decided_by=Decider.OPERATOR,
            answer=f"{router.name} is left to other routers: this node takes no part since the line `stop`.",
            changes=(Change(text="Take part again", command="appliance reload"),),
        )
    program = next((each for each in evidence.status.programs if each.name == "vrrp"), None)
    why = (
        f" is {program.state}{f' ({program.reason})' if program.reason else ''}"
        if program
        else " does not run"
    )
    return Finding(
        state="unknown",
        decided_by=Decider.PROGRAM,
        answer=f"This node has no state of {router.name}: the program vrrp{why}, or does not answer yet.",
        changes=(Change(text="See what runs", command="appliance status"),),
    )


def _found(router: VirtualRouter, running: RouterStatus, evidence: Evidence) -> Finding:
    since = evidence.since(running.since)
    if running.is_active and (running.rivals or _disagreeing(running)):
        return _two_actives(router, running, since)
    if running.is_active:
        return _active(router, running, since)
    if running.state == "fault":
        return _fault(router, running, since)
    if running.yielded:
        return _moved(router, running, since)
    return _backup(router, running, since)


def _two_actives(router: VirtualRouter, running: RouterStatus, since: str) -> Finding:
    rivals = (f"{each.peer} (priority {each.priority})" for each in running.rivals)
    names = " and ".join(dict.fromkeys((*rivals, *_disagreeing(running))))
    return Finding(
        state="two-actives",
        decided_by=Decider.PEER,
        answer=f"{router.name} is active here{since}, and on {names} at the same time (split brain).",
        reasons=(
            _priority(running),
            "Each stays active because it rejects the other one's advertisements, or does not receive them.",
            *_conflicts(running),
        ),
        changes=(
            Change(
                text="Compare router id, version, addresses, auth and peers of both, and see that protocol"
                " 112 passes between them in both directions",
                command=f"appliance vip status {router.name}",
            ),
        ),
    )


def _disagreeing(running: RouterStatus) -> tuple[str, ...]:
    """Return other routers that use the router id or an address; their advertisements are dropped here."""
    return tuple(each.peer or "another machine" for each in running.conflicts if not each.obeyed)


def _active(router: VirtualRouter, running: RouterStatus, since: str) -> Finding:
    group = running.sync_group is not None and _last_cause(running) == Cause.GROUP
    cause = CAUSES.get(_last_cause(running), "")
    held = () if running.held else ("Its addresses are not on the interface yet.",)
    leaves = ("It leaves, and waits for a successor.",) if running.leaving else ()
    return Finding(
        state="active",
        decided_by=Decider.GROUP if group else Decider.ELECTION,
        answer=f"{router.name} is active on this node{since}{f': {cause}' if cause else ''}.",
        reasons=(
            _priority(running),
            *held,
            *leaves,
            *_others(running),
            *_tracks(router, running),
            *_conflicts(running),
        ),
        changes=(Change(text="Hand it over to another router", command=f"appliance vip move {router.name}"),),
    )


def _fault(router: VirtualRouter, running: RouterStatus, since: str) -> Finding:
    tracks = [each for each in running.parts if each.weight is None and each.up is not True]
    network = any(
        each in reason for reason in running.fault_reasons for each in (running.interface, "interface")
    )
    decided_by = Decider.TRACK if tracks and not network else Decider.INTERFACE
    reasons = "; ".join(map(printable, running.fault_reasons)) or "no reason is given"
    return Finding(
        state="fault",
        decided_by=decided_by,
        answer=f"{router.name} is in fault{since}, and cannot be active here: {reasons}.",
        reasons=(*_tracks(router, running), *_others(running)),
        changes=(
            Change(
                text="It takes part again by itself as soon as that is mended",
                command=f"appliance vip status {router.name}",
            ),
        ),
    )


def _moved(router: VirtualRouter, running: RouterStatus, since: str) -> Finding:
    return Finding(
        state=running.state,
        decided_by=Decider.OPERATOR,
        answer=(f"{router.name} is {running.state} here{since}: an operator has moved it away (`vip move`)."),
        reasons=(
            "This node does not take it back, whatever its priority, while its successor runs.",
            _priority(running),
            *_others(running),
        ),
        changes=(Change(text="Let priorities decide again", command=f"appliance vip reclaim {router.name}"),),
    )


def _backup(router: VirtualRouter, running: RouterStatus, since: str) -> Finding:
    peer = next((each for each in running.heard if each.peer == running.active_peer), None)
    if peer is None:
        return Finding(
            state=running.state or "unknown",
            decided_by=Decider.NOBODY,
            answer=f"{router.name} is {running.state or 'unknown'} here{since}: it listens before it claims.",
            reasons=(_priority(running), *_tracks(router, running)),
            changes=(_waits(running),),
        )
    lacking = [each for each in running.parts if _missing(each)]
    best = running.priority + sum(map(_missing, lacking))
    held_back = running.priority <= peer.priority < best
    reasons = (_priority(running), *_tracks(router, running), *_others(running), *_conflicts(running))
    here = f"{router.name} is backup here{since}: {peer.peer} is active with priority {peer.priority}"
    if held_back:
        names = " and ".join(each.track for each in lacking)
        return Finding(
            state=running.state,
            decided_by=Decider.TRACK,
            answer=f"{here}, and this node has {running.priority}, not {best}, because of {names}.",
            reasons=reasons,
            changes=tuple(_mend(router, each) for each in lacking),
        )
    if running.priority > peer.priority and not router.preempt:
        return Finding(
            state=running.state,
            decided_by=Decider.CONFIGURATION,
            answer=f"{here}, which this node with {running.priority} does not take it from (preempt: false).",
            reasons=reasons,
            changes=(Change(text=f"On {peer.peer}", command=f"appliance vip move {router.name}"),),
        )
    if running.priority > peer.priority:
        delay = f" (preempt_delay: {router.preempt_delay:g}s)" if router.preempt_delay else ""
        return Finding(
            state=running.state,
            decided_by=Decider.ELECTION,
            answer=f"{here}, and this node with {running.priority} is about to take over{delay}.",
            reasons=(*_uninformed(running), *reasons),
            changes=(_waits(running),),
        )
    return Finding(
        state=running.state,
        decided_by=Decider.PEER,
        answer=f"{here}, and this node has {running.priority}.",
        reasons=reasons,
        changes=(
            Change(text=f"To have it here, on {peer.peer}", command=f"appliance vip move {router.name}"),
        ),
    )


def _missing(part: PriorityPartStatus) -> int:
    """Return what a track would add to the priority if it were up."""
    if part.added < 0:
        return -part.added
    return max(part.weight or 0, 0) if part.up is not True else 0


def _mend(router: VirtualRouter, part: PriorityPartStatus) -> Change:
    target = next((f" ({each.kind}: {each.target})" for each in router.track if each.name == part.track), "")
    return Change(
        text=f"Mend what {part.track} looks at{target}", command=f"appliance vip status {router.name}"
    )


def _waits(running: RouterStatus) -> Change:
    due = running.timers.deadline_in
    return Change(
        text=f"Wait: it decides in {due:.1f} s" if due is not None else "Wait: it decides by itself"
    )


def _uninformed(running: RouterStatus) -> Iterator[str]:
    if running.uninformed_for:
        for each in running.awaited or (LINGER,):
            yield f"It waits until the program {_AWAITED[each]}, {running.uninformed_for:.0f} s at most."


def _priority(running: RouterStatus) -> str:
    added = "".join(f" {each.added:+d} {each.track}" for each in running.parts if each.added)
    made_of = f" = {running.base}{added}" if added else ""
    return f"Its priority here is {running.priority}{made_of}."


def _tracks(router: VirtualRouter, running: RouterStatus) -> Iterator[str]:
    for each in running.parts:
        if each.up is True:
            continue
        target = next(
            (f", {known.kind} {known.target}" for known in router.track if known.name == each.track), ""
        )
        state = "down" if each.up is False else "not judged yet"
        means = "which means fault" if each.weight is None else f"weight {each.weight:+d}"
        detail = f": {printable(each.detail)}" if each.detail else ""
        yield f"Tracked {each.track}{target} is {state}{detail} ({means})."


def _others(running: RouterStatus) -> Iterator[str]:
    for each in running.heard:
        yield f"{each.peer} was last seen as {each.state or 'router'} with priority {each.priority}."


def _conflicts(running: RouterStatus) -> Iterator[str]:
    for each in running.conflicts:
        about = f": {printable(each.detail)}" if each.detail else ""
        yield f"Conflict with {each.peer or 'another machine'} ({each.kind}){about}."


def _last_cause(running: RouterStatus) -> str:
    return running.transitions[-1].cause if running.transitions else ""


def _history(running: RouterStatus, evidence: Evidence) -> Iterator[str]:
    for each in running.transitions[-1:]:
        cause = CAUSES.get(each.cause, each.cause)
        peer = f", {each.peer}" if each.peer else ""
        before = f" from {each.previous}" if each.previous else ""
        yield f"It changed{before} to {each.state} {evidence.ago(each.at)}: {cause}{peer}."
