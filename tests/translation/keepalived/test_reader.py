"""A keepalived.conf as a whole: what it becomes, and that our own validation takes it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.translation.keepalived_files import PATH, instance, translated, virtual_ips

from appliance.model.loading.loading import load
from appliance.translation.translation import Outcome

pytestmark = pytest.mark.pure

PAIR = """\
! Configuration File for keepalived
global_defs {
    router_id lb-0
}
vrrp_script chk_haproxy {
    script "killall -0 haproxy"
    interval 2
    weight 2
}
vrrp_instance VI_1
{
    state MASTER
    interface ens192
    virtual_router_id 51
    priority 101
    authentication {
        auth_type PASS
        auth_pass 1111
    }
    virtual_ipaddress { 10.0.0.200/24 }
    track_script {
        chk_haproxy
    }
}
"""


def test_pair():
    """The file of a common pair becomes one virtual IP, and our validation accepts it."""
    translation = translated(PAIR, programs=("proxy-api",))
    assert virtual_ips(translation) == {
        "VI_1": {
            "interface": "ens192",
            "router_id": 51,
            "priority": 101,
            "auth": {"pass": "1111"},
            "addresses": ["10.0.0.200/24"],
            "track": {"chk_haproxy": {"program": "proxy-api", "interval": "2s", "weight": 2}},
        }
    }
    assert [each.outcome for each in translation.lines if each.outcome is not Outcome.KEPT] == [
        Outcome.IGNORED,
        Outcome.CHANGED,
        Outcome.CHANGED,
    ]
    whole = {
        "api": {"frontends": {"kube-api": {"bind": ["[::]:6443"], "pool": "masters"}}},
        "pools": {"masters": {"servers": {"a": {"address": "10.0.0.1:6443"}}}},
        "virtual_ips": virtual_ips(translation),
    }
    assert load(json.dumps(whole), source="x", number=1).problems == ()


def test_every_line_has_an_outcome():
    """Each line that is not empty and no comment is told of, in the order of the file."""
    lines = [number for number, line in enumerate(PAIR.splitlines(), 1) if not line.startswith("!")]
    assert [each.place.line for each in translated(PAIR).lines] == lines


def test_places_are_those_of_the_file():
    """What our own rules find later has the line and the column of keepalived.conf."""
    root = translated("\n" + instance("priority 150")).root
    entry = root.value["virtual_ips"].node.value["VI"]  # type: ignore[index,union-attr]  # mappings
    assert (entry.place.line, entry.place.source) == (2, PATH)  # type: ignore[union-attr]
    priority = entry.node.value["priority"].node.place  # type: ignore[union-attr,index]
    assert (priority.line, priority.column) == (6, 10)


_LINES = (
    *(
        "vrrp_instance VI {",
        "vrrp_script c {",
        "vrrp_sync_group G {",
        "global_defs {",
        "track_script {",
        "}",
        "{",
    ),
    *(
        "virtual_ipaddress {",
        "192.0.2.1/24",
        "2001:db8::1",
        "interface eth0",
        "virtual_router_id 7",
        "priority",
    ),
    *("script 'killall -0 haproxy'", "interval 2", "weight -3 reverse", "c weight 5", "group { VI }", "@a b"),
    *("$V=x \\", "$V", "${V}", "~SEQ(V,3) x$V", "include *", 'notify "x', "state MASTER", "nopreempt", "# x"),
    *(
        "authentication { auth_type PASS",
        "auth_pass x",
        "unicast_peer { 192.0.2.2",
        "version 3",
        "\x00",
        "\x85",
    ),
)


@given(st.lists(st.one_of(st.sampled_from(_LINES), st.text(max_size=20)), max_size=40))
def test_any_text(lines: list[str]):
    """Whatever a file says, every line of it has an outcome with a place in it, and a reason unless kept."""
    text = "\n".join(lines)
    translation = translated(text)
    count = text.count("\n") + 1
    for each in translation.lines:
        assert 1 <= each.place.line <= count
        assert each.place.column >= 1
        assert (each.reason is None) == (each.outcome is Outcome.KEPT)
        assert each.text.isprintable()


@pytest.mark.parametrize(
    ("script", "refused"),
    [
        ("'killall -0 haproxy' # the quick way", False),
        ("'pidof haproxy' and more", True),
        ("'pidof haproxy '", False),
        ("'pidof haproxy", True),
        ("'", True),
    ],
)
def test_a_script_in_single_quotes_is_one_word(script: str, *, refused: bool):
    """Behind `script` they quote as double ones do, and what stands behind them is not handed over."""
    translation = translated(PAIR.replace('"killall -0 haproxy"', script))
    assert bool(translation.refused) is refused
