"""A `virtual_server` as a whole: the frontend and the pool that it becomes."""

import json

import pytest
from support.translation.keepalived_files import instance, mapping, told, translated
from support.translation.virtual_servers import NAME, pool, real_server, refusals, virtual_server

from appliance.model.document.tree import plain
from appliance.model.loading.loading import load
from appliance.model.snapshot.frontends import Forward, Masquerade
from appliance.translation.translation import Outcome

pytestmark = pytest.mark.pure

C, I, R = Outcome.CHANGED, Outcome.IGNORED, Outcome.REFUSED  # noqa: E741  # as the outcomes are called

API = """\
virtual_server 192.0.2.150 6443 {
    delay_loop 6
    lb_algo wrr
    lb_kind NAT
    protocol TCP
    sorry_server 192.0.2.99 8080
    real_server 192.0.2.11 6443 {
        weight 3
        TCP_CHECK {
            connect_timeout 3
            retry 2
            delay_before_retry 2
        }
    }
    real_server 192.0.2.12 6443 {
        weight 1
        TCP_CHECK {
            connect_timeout 3
            retry 2
            delay_before_retry 2
        }
    }
}
"""


def test_nat():
    """NAT becomes a frontend that the kernel forwards, and a pool with weights, checks and a backup."""
    translation = translated(API)
    assert refusals(translation) == []
    assert plain(translation.root) == {
        "pools": {
            NAME: {
                "check": {
                    "type": "tcp",
                    "interval": "6s",
                    "fast_interval": "2s",
                    "timeout": "3s",
                    "rise": 1,
                    "fall": 3,
                },
                "servers": {
                    "192.0.2.11-6443": {"address": "192.0.2.11:6443", "weight": 3},
                    "192.0.2.12-6443": {"address": "192.0.2.12:6443"},
                    "sorry-192.0.2.99-8080": {"address": "192.0.2.99:8080", "backup": True, "check": False},
                },
            }
        },
        "api": {
            "frontends": {
                NAME: {
                    "bind": ["192.0.2.150:6443"],
                    "pool": NAME,
                    "forward": "kernel",
                    "masquerade": "auto",
                }
            }
        },
    }


def test_our_own_validation_takes_it():
    """What comes out is a configuration without errors, forwarded by the kernel with the clients' addresses."""
    loaded = load(json.dumps(plain(translated(API).root)), source="x", number=1)
    assert loaded.errors == ()
    assert loaded.snapshot is not None
    [(_, frontend)] = loaded.snapshot.forwarded
    assert (frontend.forward, frontend.masquerade) == (Forward.KERNEL, Masquerade.AUTO)


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        ("virtual_server 192.0.2.150 6443 { lb_kind DR", "lb_kind"),
        ("virtual_server group web {", "write a `virtual_server ADDRESS PORT` for each"),
        ("virtual_server fwmark 3 {", "write a `virtual_server ADDRESS PORT` for each"),
    ],
)
def test_one_refused_block_is_one_line(head: str, reason: str):
    """What cannot be said is left out as a whole, told once, and no line of it is kept."""
    text = f"{head}\nprotocol TCP\n{real_server('TCP_CHECK {', '}')}\n}}\n"
    translation = translated(text)
    [one] = refusals(translation)
    assert one.place.line == 1
    assert reason in (one.reason or "")
    assert plain(translation.root) == {}
    assert {each.outcome for each in translation.lines[1:]} == {I}
