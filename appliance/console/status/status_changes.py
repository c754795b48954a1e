"""A status as single facts, and the lines that report changes: for pipes and logs, instead of tables."""

from collections.abc import Iterator, Mapping

from appliance.core.status.status import ServerStatus, Status

Facts = Mapping[str, str]


def facts(status: Status) -> Facts:
    """Return the facts that deserve a line when they change, by subject; counters are left out."""
    return dict(_facts(status))


def changed_facts(before: Facts, now: Facts) -> Iterator[str]:
    """Yield a line for every new or changed fact, and for every subject that is gone."""
    for subject, fact in now.items():
        if before.get(subject) != fact:
            yield f"{subject}: {fact}"
    for subject in before.keys() - now.keys():
        yield f"{subject}: gone"


def _facts(status: Status) -> Iterator[tuple[str, str]]:
    if status.configuration is not None:
        yield "configuration", f"number {status.configuration} from {status.source}"
    for program in status.programs:
        reason = f" ({program.reason})" if program.reason else ""
        yield f"program {program.name}", f"{program.state}{reason}"
    for pool in status.pools:
        yield from ((f"server {pool.name}/{server.name}", _server(server)) for server in pool.servers)
    yield from ((f"virtual IP {each.name}", each.state or "unknown") for each in status.virtual_ips)
    for redirect in status.redirects:
        yield f"redirect {redirect.name}", redirect.state or "unknown"
    for each in status.generations:
        yield f"generation {each.program} {each.generation}", each.phase
    yield "appliance", "all is well" if status.ok else "; ".join(status.problems)


def _server(server: ServerStatus) -> str:
    check = server.check
    if check is None or server.state is None:
        return server.state or "unknown"
    return (
        f"{server.state} ({check.result}/{check.status})"
        if check.status
        else f"{server.state} ({check.result})"
    )
