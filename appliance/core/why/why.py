"""From a subject to its explanation."""

from typing import assert_never

from appliance.core.why.explanation import Evidence, Explanation, Kind
from appliance.core.why.frontends import explain_frontend
from appliance.core.why.history import remembered
from appliance.core.why.pools import explain_pool
from appliance.core.why.servers import explain_server
from appliance.core.why.shared_ips import explain_neighbor, explain_shared_ip
from appliance.core.why.subjects import Subject
from appliance.core.why.virtual_ips import explain_virtual_ip


def explain(subject: Subject, evidence: Evidence) -> Explanation:
    """Return why one thing of the snapshot is in its state, and what happened to it before."""
    return remembered(_explained(subject, evidence), subject, evidence)


def _explained(subject: Subject, evidence: Evidence) -> Explanation:
    snapshot = evidence.snapshot
    match subject.kind:
        case Kind.SERVER:
            pool = next(each for each in snapshot.pools if each.name == subject.pool)
            server = next(each for each in pool.servers if each.name == subject.name)
            return explain_server(pool, server, evidence)
        case Kind.POOL:
            return explain_pool(next(each for each in snapshot.pools if each.name == subject.name), evidence)
        case Kind.FRONTEND:
            group = next(each for each in snapshot.groups if each.name == subject.group)
            frontend = next(each for each in group.frontends if each.name == subject.name)
            return explain_frontend(group, frontend, evidence)
        case Kind.VIRTUAL_IP:
            routers = snapshot.virtual_routers
            return explain_virtual_ip(next(each for each in routers if each.name == subject.name), evidence)
        case Kind.SHARED_IP:
            shared = next(each for each in snapshot.shared_ips if each.name == subject.name)
            return explain_shared_ip(shared, evidence)
        case Kind.NEIGHBOR:
            neighbors = snapshot.bgp.neighbors if snapshot.bgp else ()
            return explain_neighbor(next(each for each in neighbors if each.name == subject.name), evidence)
        case _:
            assert_never(subject.kind)
