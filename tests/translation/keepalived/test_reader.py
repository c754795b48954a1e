"""A keepalived.conf as a whole: what it becomes, and that our own validation takes it."""

import json
from collections.abc import Mapping

import pytest

from appliance.model.document.tree import Plain, plain
from appliance.model.loading.loading import load
from appliance.translation.keepalived.reader import translate
from appliance.translation.translation import Outcome, Translation

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


def read(text: str, *, programs: tuple[str, ...] = ("proxy-api",), **files: str) -> Translation:
    """Translate a text; `files` are those that it may include."""
    contents = {"/etc/keepalived/keepalived.conf": text, **files}

    def give(path: str) -> bytes:
        if path not in contents:
            raise FileNotFoundError(2, "No such file or directory")
        return contents[path].encode()

    return translate(
        "/etc/keepalived/keepalived.conf",
        read=give,
        matching=lambda _pattern: [],
        hostname="lb-0.example.com",
        environment={},
        programs=programs,
    )


def virtual_ips(translation: Translation) -> Mapping[str, Plain]:
    """Return the virtual IPs of a translation as plain values."""
    found = plain(translation.root)
    assert isinstance(found, dict)
    under = found["virtual_ips"]
    assert isinstance(under, dict)
    return under


def test_pair():
    """The file of a common pair becomes one virtual IP, and our validation accepts it."""
    translation = read(PAIR)
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
        "virtual_ips": dict(virtual_ips(translation)),
    }
    assert load(json.dumps(whole), source="x", number=1).problems == ()


def test_every_line_has_an_outcome():
    """Each line that is not empty and no comment is told of, in the order of the file."""
    lines = [number for number, line in enumerate(PAIR.splitlines(), 1) if not line.startswith("!")]
    assert [each.place.line for each in read(PAIR).lines] == lines
