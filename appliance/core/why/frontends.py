"""Why a frontend takes connections, or does not."""

import re
from collections.abc import Iterator

from appliance.core.status.problems import located
from appliance.core.status.status import FrontendStatus, ProgramState, ProgramStatus
from appliance.core.why.explanation import Change, Decider, Evidence, Explanation, Finding, Kind, explained
from appliance.core.why.pools import PoolState, explain_pool, pool_answer, pool_state
from appliance.model.snapshot.frontends import Frontend, Group, pools_of
from appliance.model.snapshot.pools import Pool
from appliance.wire.lines.control import AnswerProblem
from appliance.wire.lines.forward_status import ForwardStatus
from appliance.wire.lines.reload_status import ReloadStatus


def explain_frontend(group: Group, frontend: Frontend, evidence: Evidence) -> Explanation:
    """Return why a frontend is in its state."""
    statuses = evidence.status.frontends
    status = next(each for each in statuses if (each.program, each.name) == (group.program, frontend.name))
    found = _found(group, frontend, status, evidence)
    reasons = _reasons(group, frontend, status, evidence)
    return explained(Kind.FRONTEND, frontend.name, found, evidence, *reasons)


def _found(group: Group, frontend: Frontend, status: FrontendStatus, evidence: Evidence) -> Finding:
    program = next((each for each in evidence.status.programs if each.name == group.program), None)
    serving = bool(program and program.workers)
    pool = evidence.snapshot.pool(frontend.pool or frontend.needs or "")
    if not serving:
        return _not_listening(frontend, group, program, evidence)
    if refusal := _taken_bind(frontend, evidence):
        return _found_taken(frontend, refusal)
    if status.full:
        return _full(frontend, status)
    if pool is not None and pool_state(pool, evidence) is PoolState.EMPTY:
        return _without_server(frontend, pool, evidence)
    to = f"sends its connections to {_pools(frontend)}" if frontend.pool else f"answers {frontend.respond}"
    return Finding(
        state="serving",
        decided_by=Decider.CONFIGURATION,
        answer=f"{frontend.name} serves: it listens on {_binds(frontend)} and {to}.",
        changes=(
            Change(text="See its connections", command=f"appliance sessions --frontend {frontend.name}"),
        ),
    )


def _pools(frontend: Frontend) -> str:
    ways = (
        ("client network", pools_of(frontend.pool, frontend.clients)),
        ("server name", pools_of(frontend.pool, frontend.sni)),
    )
    routed = (f", and by {way} to {' or '.join(pools[1:])}" for way, pools in ways if len(pools) > 1)
    return f"{frontend.pool}{''.join(routed)}"


def _binds(frontend: Frontend) -> str:
    return " and ".join(map(str, frontend.binds))


def _not_listening(
    frontend: Frontend, group: Group, program: ProgramStatus | None, evidence: Evidence
) -> Finding:
    why = f": {program.reason}" if program and program.reason else ""
    state = program.state if program else ProgramState.UNKNOWN
    taken = "in use" in why
    ends = "End what listens there, or change the bind, then" if taken else "See its log, then"
    return Finding(
        state="not-listening",
        decided_by=Decider.OTHER_PROGRAM if taken else Decider.PROGRAM,
        answer=f"{frontend.name} does not listen on {_binds(frontend)}: {group.program} is {state}{why}.",
        changes=(
            Change(
                text=ends,
                command=f"{evidence.supervisorctl} restart {group.program}",
            ),
            Change(text="See what runs", command="appliance status"),
        ),
    )


def _taken_bind(frontend: Frontend, evidence: Evidence) -> AnswerProblem | None:
    """Return the last reload's problem if this frontend's new bind in the file is in use already."""
    reload = evidence.observations.answer(ReloadStatus)
    for each in reload.refused if reload else ():
        named = re.search(rf"\bfrontends\.{re.escape(frontend.name)}\b", each.path or "")
        if named and "in use" in each.message:
            return each
    return None


def _found_taken(frontend: Frontend, refusal: AnswerProblem) -> Finding:
    return Finding(
        state="serving-as-before",
        decided_by=Decider.OTHER_PROGRAM,
        answer=(
            f"{frontend.name} listens on {_binds(frontend)} as before: what the file wants cannot be had:"
            f" {located(refusal)}."
        ),
        changes=(
            Change(text="End what listens there, or change the file, then", command="appliance reload"),
        ),
    )


def _full(frontend: Frontend, status: FrontendStatus) -> Finding:
    return Finding(
        state="full",
        decided_by=Decider.LIMIT,
        answer=(
            f"{frontend.name} is full: {status.current} of {status.max_connections} connections"
            " (max_connections). New ones wait in the kernel until one ends."
        ),
        changes=(
            Change(text="See who has them", command=f"appliance sessions --frontend {frontend.name}"),
            Change(text="Set a higher max_connections in the file, then", command="appliance reload"),
        ),
    )


def _without_server(frontend: Frontend, pool: Pool, evidence: Evidence) -> Finding:
    explained = explain_pool(pool, evidence)
    effect = (
        "accepts connections and closes them" if frontend.pool else f"answers {frontend.respond} with 503"
    )
    return Finding(
        state="no-server",
        decided_by=explained.decided_by,
        since=explained.since,
        answer=f"{frontend.name} listens on {_binds(frontend)}, and {effect}: {explained.answer}",
        changes=(
            Change(text="See why", command=f"appliance why {pool.name} --kind pool"),
            *explained.changes,
        ),
    )


def _sync(evidence: Evidence) -> Iterator[str]:
    forward = evidence.observations.answer(ForwardStatus)
    if forward is None or forward.sync is None:
        return
    found = forward.sync
    if found.unlearnt:
        yield f"Its connections would end with this node (`sync`): {found.unlearnt}."
    else:
        yield f"Other nodes learn its connections (`sync`): {found.state}{evidence.since(found.since)}."


def _reasons(group: Group, frontend: Frontend, status: FrontendStatus, evidence: Evidence) -> Iterator[str]:
    yield f"{status.current} of {status.max_connections} connections are open, {status.total} came so far."
    pool = evidence.snapshot.pool(frontend.pool or frontend.needs or "")
    if pool is not None:
        yield pool_answer(pool, evidence)
    if status.denied:
        lists = " and ".join(name for name in ("allow", "deny") if getattr(frontend, name))
        yield f"{status.denied} connections were refused by its list `{lists}`."
    if status.failed:
        yield f"{status.failed} connections got no server."
    if frontend.sync:
        yield from _sync(evidence)
    for each in evidence.status.redirects:
        if each.name == f"{group.name}/{frontend.name}":
            why = f": {each.reason}" if each.reason else ""
            yield (
                f"New connections to {' '.join(each.sources)}, where another program listens, are to come"
                f" here too; that is {each.state or 'unknown'}{evidence.since(each.since)}{why}."
            )
