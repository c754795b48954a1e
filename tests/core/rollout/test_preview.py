"""What a change of configuration would do, as the operator is shown it."""

from dataclasses import replace

import pytest

from appliance.core.rollout.needs_generation import needs_generation
from appliance.core.rollout.preview import Preview, PreviewedChange, Takes, as_values, preview
from appliance.model.document.document import read
from appliance.model.loading.loading import load
from appliance.model.snapshot.snapshot import Snapshot

pytestmark = pytest.mark.pure

_BEFORE = """\
api:
  workers: 2
  frontends:
    kube-api: { bind: ["[::]:9445"], pool: masters }
pools:
  masters:
    check: { type: https, path: /readyz, interval: 5s }
    servers:
      m0: { address: "10.0.0.1:6443" }
      m1: { address: "10.0.0.2:6443", weight: 1 }
"""
_VIP = """\
virtual_ips:
  api:
    { addresses: [192.0.2.1/24], interface: eth0, router_id: 1, auth: { pass: 's3cret' } }
"""


def snapshot(text: str) -> Snapshot:
    """Return the snapshot of a file."""
    loaded = load(text, source="a.yaml", number=1)
    assert loaded.snapshot is not None, loaded.errors
    return loaded.snapshot


def seen(old: str, new: str) -> Preview:
    """Return what going from one file to another does."""
    return preview(snapshot(old), snapshot(new), read(new))


def told(found: Preview) -> list[tuple[str, str | None, str | None, Takes, int | None]]:
    """Return the changes without their columns."""
    return [(each.path, each.old, each.new, each.takes, each.line) for each in found.changes]


def test_nothing():
    """The same file changes nothing."""
    assert seen(_BEFORE, _BEFORE) == Preview(changes=(), generations=(), start=(), stop=())


_M1 = "pools.masters.servers.m1"
_KUBE = "api.frontends.kube-api"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("weight: 1", "weight: 3", (f"{_M1}.weight", "1", "3", Takes.LIVE, 10)),
        ("0.2:6443", "0.9:6443", (f"{_M1}.address", "10.0.0.2", "10.0.0.9", Takes.LIVE, 10)),
        ("0.2:6443", "0.2:6444", (f"{_M1}.address", ":6443", ":6444", Takes.LIVE, 10)),
        ("workers: 2", "workers: auto", ("api.workers", "2", "none", Takes.GENERATION, 2)),
        (":9445", ":6443", (f"{_KUBE}.bind", "[::]:9445", "[::]:6443", Takes.GENERATION, 4)),
        ("masters }", "masters, allow: [10.0.0.0/8] }", (f"{_KUBE}.allow", "", "10.0.0.0/8", Takes.LIVE, 4)),
        ("pools:", "group: adm\npools:", ("group", "none", "adm", Takes.RESTART, 5)),
        ("pools:", "log: { level: debug }\npools:", ("log.level", "info", "debug", Takes.LIVE, 5)),
        ("    check:", "    panic: 50%\n    check:", ("pools.masters.panic", "0%", "50%", Takes.LIVE, 7)),
        ("pools:", "log: { connections: true }\npools:", ("log.connections", "false", "true", Takes.LIVE, 5)),
    ],
)
def test_one_key(old: str, new: str, expected: object):
    """Its old and new value, its line in the new file, and whether workers have to be started anew."""
    found = seen(_BEFORE, _BEFORE.replace(old, new))
    assert told(found) == [expected]
    assert found.generations == (("proxy-api",) if found.changes[0].takes is Takes.GENERATION else ())


def test_a_key_of_the_pool_is_told_once():
    """A snapshot has it at every server; the file says it once."""
    found = seen(_BEFORE, _BEFORE.replace("path: /readyz", "path: /healthz, expect: 200-299"))
    assert told(found) == [
        ("pools.masters.check.path", "/readyz", "/healthz", Takes.LIVE, 7),
        ("pools.masters.check.expect", "200-399", "200-299", Takes.LIVE, 7),
    ]


def test_a_default_is_told_once_for_each_that_has_it():
    """Its line is in `defaults`."""
    found = seen(_BEFORE, _BEFORE + "defaults: { timeouts: { client: 1h } }\n")
    assert told(found) == [("defaults.timeouts.client", "86400s", "3600s", Takes.LIVE, 11)]


def test_servers_that_come_and_go():
    """Each is one entry, and that their order is another one is not told beside it."""
    line = '      m1: { address: "10.0.0.2:6443", weight: 1 }\n'
    found = seen(_BEFORE, _BEFORE.replace(line, line.replace("m1", "m2")))
    assert told(found) == [
        ("pools.masters.servers.m1", "10.0.0.2:6443", None, Takes.LIVE, 8),
        ("pools.masters.servers.m2", None, "10.0.0.2:6443", Takes.LIVE, 10),
    ]


def test_an_order_alone():
    """Servers that change places are told by their order."""
    lines = _BEFORE.splitlines(keepends=True)
    found = seen(_BEFORE, "".join([*lines[:8], lines[9], lines[8]]))
    assert told(found) == [("pools.masters.servers", "m0, m1", "m1, m0", Takes.LIVE, 8)]


def test_frontends_come_by_a_new_generation_and_groups_by_a_program():
    """A group that is new has no workers yet to be replaced."""
    more = _BEFORE.replace("pools:", '    two: { bind: ["[::]:1"], pool: masters }\npools:')
    found = seen(_BEFORE, more)
    assert (told(found), found.generations) == (
        [("api.frontends.two", None, "", Takes.GENERATION, 5)],
        ("proxy-api",),
    )
    group = 'ingress: { frontends: { a: { bind: ["[::]:80"], pool: masters } } }\n'
    found = seen(_BEFORE, _BEFORE + group)
    assert told(found) == [("ingress", None, "", Takes.PROGRAM, 11)]
    assert (found.generations, found.start, found.stop) == ((), ("proxy-ingress",), ())
    back = seen(_BEFORE + group, _BEFORE)
    assert told(back) == [("ingress", "", None, Takes.PROGRAM, None)]
    assert (back.start, back.stop) == ((), ("proxy-ingress",))


def test_secrets_are_not_shown():
    """That one has changed is told, and neither of them."""
    found = seen(_BEFORE + _VIP, _BEFORE + _VIP.replace("s3cret", "0ther"))
    assert told(found) == [("virtual_ips.api.auth.pass", "***", "***", Takes.LIVE, 13)]
    assert "s3cret" not in str(as_values(seen(_BEFORE, _BEFORE + _VIP)))


def test_what_is_long_is_cut():
    """A list of networks may be of any length."""
    many = ", ".join(f"10.0.{each}.0/24" for each in range(99))
    (change,) = seen(
        _BEFORE, _BEFORE.replace("pool: masters }", f"pool: masters, allow: [{many}] }}")
    ).changes
    assert change.new is not None
    assert len(change.new) == 203


def test_tracks_are_told_by_their_key():
    """What does not fit on a line is told without its values."""
    found = seen(_BEFORE + _VIP, _BEFORE + _VIP.replace("auth:", "track: { t: { file: /a } }, auth:"))
    assert told(found) == [("virtual_ips.api.track", "", "", Takes.LIVE, 13)]


def test_as_values():
    """Each key of a change has its name in the answer."""
    found = PreviewedChange(
        path="a", old=None, new="1", takes=Takes.LIVE, line=1, column=2, source="haproxy.cfg"
    )
    whole = Preview(changes=(found,), generations=("proxy-api",), start=("vrrp",), stop=())
    change = {"path": "a", "old": None, "new": "1", "takes": "live"}
    assert as_values(whole) == {
        "changes": [{**change, "line": 1, "column": 2, "source": "haproxy.cfg"}],
        "generations": ["proxy-api"],
        "start": ["vrrp"],
        "stop": [],
    }


@pytest.mark.parametrize(
    "change", ["workers: 2|workers: 3", "9445|9446", "kube-api:|other:", "weight: 1|weight: 2"]
)
def test_what_is_told_is_what_a_reload_does(change: str):
    """The two ways to ask whether workers are replaced never differ."""
    old = snapshot(_BEFORE)
    new = snapshot(_BEFORE.replace(*change.split("|")))
    found = preview(old, replace(new, number=2), read(_BEFORE))
    assert bool(found.generations) == needs_generation(before=old, after=new, group="api")
