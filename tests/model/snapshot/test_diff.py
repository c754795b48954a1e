"""`model.snapshot.diff`: what is told of a change, and that it is the whole change."""

from collections.abc import Callable
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given, settings
from support.run.tiers import examples
from support.values.snapshots import (
    bind,
    check,
    frontend,
    group,
    pool,
    server,
    snapshot,
    snapshots,
    track,
    virtual_router,
)

from appliance.model.operator_events import EventSeverity
from appliance.model.snapshot.diff import Absent, ConfigChange, apply, changed, diff
from appliance.model.snapshot.linger import Linger
from appliance.model.snapshot.pools import Balance
from appliance.model.snapshot.snapshot import Log, NotifyTarget, Reload, Snapshot, without_secrets
from appliance.model.snapshot.virtual_router import HmacKey

pytestmark = pytest.mark.pure

MASTERS = pool("masters", servers=[server("master-0"), server("master-1")])
OLD = snapshot(
    groups=[group("api", frontends=[frontend("kube-api", pool="masters"), frontend("ready")])],
    pools=[MASTERS, pool("routers")],
    virtual_routers=[virtual_router("api"), virtual_router("ingress")],
)
API_VIP, INGRESS_VIP = OLD.virtual_routers


def _masters(**changes: object) -> Snapshot:
    return replace(OLD, pools=(replace(MASTERS, **changes), OLD.pools[1]))


def _api(*frontends: object) -> Snapshot:
    return replace(OLD, groups=(group("api", frontends=frontends),))


@settings(max_examples=examples(30))  # whole snapshots are slow to draw
@given(snapshots(), snapshots())
def test_the_diff_applied_to_old_gives_new(old: Snapshot, new: Snapshot):
    """Whatever two snapshots hold, the changes turn the content of one into that of the other."""
    assert apply(old, diff(old, new)) == replace(new, number=old.number, source=old.source)


@settings(max_examples=examples(30))  # whole snapshots are slow to draw
@given(snapshots())
def test_the_same_content_is_no_difference(drawn: Snapshot):
    """Another number and another file name are not a change."""
    again = replace(drawn, number=drawn.number + 1, source="elsewhere.yaml")

    assert (diff(drawn, again), changed(drawn, again)) == ((), ())


@settings(max_examples=examples(30))  # whole snapshots are slow to draw
@given(snapshots(), snapshots())
def test_every_difference_is_told(old: Snapshot, new: Snapshot):
    """The operator hears of a change exactly where there is one."""
    assert bool(changed(old, new)) == bool(diff(old, new))


def test_who_is_told_is_named_in_a_change():
    """A target of `notify` that comes, or that is told otherwise, is a change by its name."""
    ops = NotifyTarget(name="ops", severity=EventSeverity.INFO, timeout=10.0, syslog="/dev/log")
    one, other = replace(OLD, notify=(ops,)), replace(OLD, notify=(replace(ops, timeout=5.0),))
    assert changed(OLD, one) == ("notify.ops",)
    assert changed(one, other) == ("notify.ops",)
    assert apply(one, diff(one, other)) == other
    assert without_secrets(replace(OLD, notify=(replace(ops, webhook="https://s3cret/"),))).notify == (ops,)


def test_members_of_the_group_do_not_see_the_key_of_linger():
    """They see that it is configured, and how."""
    linger = Linger(longest=60.0, port=29446, keys=(HmacKey(id=1, secret="ab" * 32),))
    assert without_secrets(replace(OLD, linger=linger)).linger == replace(linger, keys=())


def test_a_change_holds_both_sides():
    """A changed value is one change, with what was and what is."""
    changes = diff(OLD, _masters(retries=5))

    assert changes == (ConfigChange(path=("pools", "masters", "retries"), old=3, new=5),)


def test_what_comes_has_no_old_side():
    """An added server is one change whose old side is absent; the order is another."""
    changes = diff(OLD, _masters(servers=(*MASTERS.servers, server("master-2"))))

    assert [(change.path[-1], change.old is Absent.ABSENT) for change in changes] == [
        ("*", False),
        ("master-2", True),
    ]


def test_changes_of_another_snapshot_are_refused():
    """Changes inside of what a snapshot does not have as a mapping cannot be applied."""
    change = ConfigChange(path=("log", "level", "deep"), old=1, new=2)

    with pytest.raises(TypeError, match="another snapshot"):
        apply(OLD, (change,))


KUBE_API, READY = frontend("kube-api", pool="masters"), frontend("ready")
FIRST, SECOND = MASTERS.servers


@pytest.mark.parametrize(
    ("new", "told"),
    [
        (_masters(retries=5, slow_start=9.0), "pools.masters"),
        (_masters(servers=(replace(FIRST, weight=2), SECOND)), "pools.masters.servers.master-0"),
        (_masters(servers=(replace(FIRST, check=check("http")), SECOND)), "pools.masters.servers.master-0"),
        (_masters(servers=(FIRST, SECOND, server("master-2"))), "pools.masters.servers.master-2"),
        (_masters(servers=(FIRST,)), "pools.masters.servers.master-1"),
        (_masters(servers=(SECOND, FIRST)), "pools.masters.servers"),
        (replace(OLD, pools=OLD.pools[::-1]), "pools"),
        (replace(OLD, pools=OLD.pools[:1]), "pools.routers"),
        (_api(replace(KUBE_API, binds=(bind(1),)), READY), "api.frontends.kube-api"),
        (_api(READY, KUBE_API), "api.frontends"),
        (_api(READY), "api.frontends.kube-api"),
        (replace(OLD, groups=(replace(OLD.groups[0], workers=4),)), "api.workers"),
        (replace(OLD, groups=()), "api"),
        (replace(OLD, groups=(*OLD.groups, group("ingress"))), "ingress"),
        (replace(OLD, virtual_routers=(API_VIP,)), "virtual_ips.ingress"),
        (replace(OLD, virtual_routers=(replace(API_VIP, priority=1), INGRESS_VIP)), "virtual_ips.api"),
        (replace(OLD, virtual_routers=(replace(API_VIP, track=(track(),)), INGRESS_VIP)), "virtual_ips.api"),
        (replace(OLD, virtual_routers=(*OLD.virtual_routers, virtual_router("x"))), "virtual_ips.x"),
        (replace(OLD, drain=9.0), "defaults.drain"),
        (replace(OLD, cluster="other"), "cluster.name"),
        (replace(OLD, readers="monitoring"), "group"),
        (replace(OLD, left_out=("the frontend `web` is left to HAProxy",)), "source.http"),
        (replace(OLD, domain="example.net"), "cluster.domain"),
        (replace(OLD, log=Log(level="debug", format="json", connections=False)), "log.level"),
        (replace(OLD, reload=Reload(sockets=("/a",), max_draining=10)), "reload.sockets"),
    ],
)
def test_paths_are_told_as_the_file_has_them(new: Snapshot, told: str):
    """The answer to a reload names what changed, down to the frontend, pool or server."""
    assert changed(OLD, new) == (told,)


def test_the_order_of_groups():
    """Groups that only changed places are told as groups, and put back in place."""
    both = replace(OLD, groups=(group("api"), group("ingress")))
    turned = replace(both, groups=both.groups[::-1])

    assert (changed(both, turned), apply(both, diff(both, turned))) == (("groups",), turned)


def test_pools_that_are_the_same_are_not_taken_apart(monkeypatch: pytest.MonkeyPatch):
    """With 400 pools of a hundred servers each that is most of what a comparison costs."""
    old = replace(OLD, pools=(pool("a"), pool("b"), pool("c")))
    new = replace(old, pools=(pool("a"), pool("b", balance=Balance.LEASTCONN), pool("c")))
    taken: list[list[str]] = []

    def noted(snapshot: Snapshot, whole: Callable[[object], object] = msgspec.to_builtins) -> object:
        taken.append([each.name for each in snapshot.pools])
        return whole(snapshot)

    monkeypatch.setattr("msgspec.to_builtins", noted)
    assert (changed(old, new), taken) == (("pools.b",), [["b"], ["b"]])
