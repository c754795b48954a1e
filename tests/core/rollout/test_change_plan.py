"""Which programs a configuration needs, and what a change asks of them."""

import pkgutil

import pytest
from hypothesis import HealthCheck, given, settings
from support.values.shared_ips import shared_ip
from support.values.snapshots import frontend, group, pool, redirect, snapshot, snapshots, virtual_router

from appliance.core.program_table import CONFIGURED, PROGRAMS, needed, stop_seconds
from appliance.core.rollout.change_plan import ProgramChanges, plan
from appliance.model.snapshot.discovery import Kubernetes
from appliance.model.snapshot.frontends import Bind, Forward
from appliance.model.snapshot.linger import Linger, MovedSessions
from appliance.model.snapshot.snapshot import Snapshot, Stats
from appliance.model.snapshot.virtual_router import HmacKey
from appliance.wire.lines.status_answer import StatusAnswer

pytestmark = pytest.mark.pure


def test_health_comes_first():
    """A configuration with pools needs health, and it is told first."""
    assert needed(snapshot(groups=[group("ingress"), group("api")])) == (
        "health",
        "proxy-api",
        "proxy-ingress",
    )


def test_nothing_to_do():
    """Without pools and groups no program is needed."""
    assert needed(snapshot(groups=[], pools=[])) == ()


def test_virtual_ips_alone_need_vrrp():
    """A configuration with virtual IPs and nothing else is served by vrrp, which does keepalived's job."""
    assert needed(snapshot(groups=[], pools=[], virtual_routers=[virtual_router()])) == ("vrrp",)


def test_vrrp_comes_last():
    """What attracts clients is told after what serves them, even where that goes away."""
    forwarded = frontend("forwarded", forward=Forward.KERNEL)
    redirected = group("ingress", frontends=[frontend(redirect=redirect()), forwarded])
    access = Kubernetes(kubeconfig=None, token_file=None, ca=None, api=(), server_name=None, family=None)
    both = snapshot(
        groups=[group("api"), redirected],
        virtual_routers=[virtual_router()],
        kubernetes=access,
        stats=Stats(bind=Bind(host="localhost", port=29445)),
        linger=Linger(
            longest=60.0,
            port=29446,
            keys=(HmacKey(id=1, secret="ab" * 32),),
            sessions=MovedSessions(certificate="/etc/appliance/nodes.pem", authorities=None, port=29447),
        ),
        shared_ips=(shared_ip(),),
    )
    api = snapshot(groups=[group("api")], virtual_routers=[virtual_router()])

    assert needed(both) == CONFIGURED
    assert plan(both, api).prepare == (
        "health", "redirect", "forward", "proxy-api", "proxy-ingress", "discover", "stats", "linger",
        "migrate", "announce", "vrrp",
    )  # fmt: skip
    assert plan(both, api).commits(but={"linger"}) == (
        ("health",), ("redirect",), ("forward",), ("proxy-api", "proxy-ingress", "discover", "stats"),
        ("migrate",), ("announce",), ("vrrp",),
    )  # fmt: skip
    assert plan(both, snapshot(groups=[group("api")])).prepare[-1] == "vrrp"
    assert plan(api, both).start == (
        "redirect", "forward", "proxy-ingress", "discover", "stats", "linger", "migrate", "announce",
    )  # fmt: skip


def test_programs_have_the_time_that_they_need_to_stop():
    """Proxies have their drain time, vrrp its longest hand-over, each with a margin; others as always."""
    routers = [virtual_router("api", hand_over=3.0), virtual_router("ingress", hand_over=7.2)]
    several = snapshot(drain=9.0, virtual_routers=routers)

    assert stop_seconds(snapshot(shared_ips=(shared_ip(drain=7.5),)), "announce") == 13
    stops = [stop_seconds(several, each) for each in ("proxy-api", "vrrp", "health", "reload")]
    assert stops == [14, 13, None, None]
    assert stop_seconds(snapshot(), "vrrp") == 5


def test_a_group_that_appears_is_started():
    """The program of a new group is started, and the others are prepared."""
    changes = plan(snapshot(groups=[group("api")]), snapshot(groups=[group("api"), group("ingress")]))
    assert changes == ProgramChanges(prepare=("health", "proxy-api"), start=("proxy-ingress",), stop=())


def test_a_group_that_disappears_is_drained_and_stopped():
    """The program of a group that is gone is told last, and then stopped."""
    changes = plan(snapshot(groups=[group("ingress"), group("api")]), snapshot(groups=[group("ingress")]))
    assert changes.prepare == ("health", "proxy-ingress", "proxy-api")
    assert changes.stop == ("proxy-api",)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(snapshots(), snapshots())
def test_a_plan_leads_to_what_is_needed(old: Snapshot, new: Snapshot):
    """What was needed, without what stops, with what starts, is what the new configuration needs."""
    changes = plan(old, new)
    assert (set(needed(old)) - set(changes.stop)) | set(changes.start) == set(needed(new))
    assert set(changes.prepare) == set(needed(old))


def test_pool_alone_needs_health():
    """A pool that is checked is enough for health to run."""
    assert needed(snapshot(groups=[], pools=[pool()])) == ("health",)


def test_what_the_kernel_forwards_needs_no_proxy():
    """A group whose frontends are all the kernel's has no proxy; `forward` has the drain time to stop."""
    found = snapshot(groups=[group("api", frontends=[frontend(forward=Forward.KERNEL)])], drain=30.0)

    assert needed(found) == ("health", "forward")
    assert stop_seconds(found, "forward") == 35
    assert plan(found, snapshot()).prepare == ("health", "forward")


def test_each_program_names_the_type_of_its_status():
    """The table names them, so that nobody loads what only `status` reads."""
    for program in PROGRAMS:
        assert issubclass(pkgutil.resolve_name(program.status), StatusAnswer)
