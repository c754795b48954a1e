"""Which changes need new workers."""

from dataclasses import replace

import pytest
from support.values.snapshots import bind, frontend, group, pool, server, snapshot

from appliance.core.rollout.needs_generation import needs_generation
from appliance.model.snapshot.frontends import ClientRoute, KeepAlive, SniRoute
from appliance.model.snapshot.snapshot import Log, Reload, Snapshot

pytestmark = pytest.mark.pure

BEFORE = snapshot(groups=[group("api"), group("ingress", frontends=[frontend("http", binds=[bind(80)])])])


def with_frontend(**changes: object) -> Snapshot:
    """Return a snapshot whose group `api` has a changed frontend."""
    return replace(BEFORE, groups=(group("api", frontends=[frontend(**changes)]), BEFORE.groups[1]))


NEW_GENERATION = {
    "workers": replace(BEFORE, groups=(group("api", workers=3), BEFORE.groups[1])),
    "frontend": replace(BEFORE, groups=(group("api", frontends=[]), BEFORE.groups[1])),
    "group": replace(BEFORE, groups=BEFORE.groups[1:]),
    "name": with_frontend(name="other"),
    "binds": with_frontend(binds=[bind(1)]),
    "pool": with_frontend(pool="other"),
    "respond": with_frontend(respond="/ready"),
    "needs": with_frontend(needs="pool"),
    "clients": with_frontend(clients=(ClientRoute(networks=("10.0.0.0/8",), pool="pool"),)),
    "sni": with_frontend(sni=(SniRoute(names=("a",), pool="pool"),)),
}
LIVE = {
    "log": replace(BEFORE, log=Log(level="debug", format="console", connections=True)),
    "allow": with_frontend(allow=("10.0.0.0/8",)),
    "deny": with_frontend(deny=("10.0.0.0/8",)),
    "number": replace(BEFORE, number=9, source="elsewhere"),
    "another group": replace(BEFORE, groups=BEFORE.groups[:1]),
    "pools": replace(BEFORE, pools=(pool(servers=[server(port=1)]),)),
    "drain": replace(BEFORE, drain=1.0, reload=Reload(sockets=(), max_draining=1)),
    "limits": with_frontend(max_connections=1, max_age=3.0, max_age_jitter=0.1),
    "timeouts": with_frontend(
        timeout_client=1.0, timeout_client_fin=9.0, timeout_hello=1.0, tcp_user_timeout=1.0
    ),
    "keepalive": with_frontend(keepalive=KeepAlive(idle=1.0, interval=1.0, count=1)),
}


@pytest.mark.parametrize("change", NEW_GENERATION)
def test_needs_generation(change: str) -> None:
    """What is fixed when a worker starts needs new workers, in either direction of the change."""
    after = NEW_GENERATION[change]
    assert needs_generation(before=BEFORE, after=after, group="api")
    assert needs_generation(before=after, after=BEFORE, group="api")


@pytest.mark.parametrize("change", LIVE)
def test_taken_live(change: str) -> None:
    """What workers take while they run needs no new ones."""
    assert not needs_generation(before=BEFORE, after=LIVE[change], group="api")


def test_order_of_frontends_is_nothing() -> None:
    """Frontends in another order are the same frontends."""
    both = [frontend("a", binds=[bind(1)]), frontend("b", binds=[bind(2)])]
    one, other = (replace(BEFORE, groups=(group("api", frontends=each),)) for each in (both, both[::-1]))
    assert not needs_generation(before=one, after=other, group="api")
