"""Two active nodes that do not obey each other: `appliance status` is no on both, and says who."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from support.network.namespaces import Node
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance
from support.vrrp.vrrp_field import VIP, Field

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "tcpdump", root=True)]

_KEY: Final = "00112233445566778899aabbccddeeff" * 2
_HMAC: Final = {"hmac": {"keys": {"1": _KEY}}}
_OTHER_KEY: Final = {"hmac": {"keys": {"1": _KEY[::-1]}}}
_NOBODY: Final = "192.0.2.250"
_ONE: Final = "192.0.2.1"
_TWO: Final = "192.0.2.2"

Terms = Mapping[str, object]

_VERSION_2: Final[Terms] = {"version": 2, "advert": "1s"}
_DISAGREEMENTS: Final[Mapping[str, tuple[Terms, Terms]]] = {
    "hmac-on-one": ({"auth": _HMAC}, {}),
    "another-hmac-key": ({"auth": _HMAC}, {"auth": _OTHER_KEY}),
    "another-password": (_VERSION_2 | {"auth": {"pass": "ours"}}, _VERSION_2 | {"auth": {"pass": "theirs"}}),
    "password-on-one": (_VERSION_2 | {"auth": {"pass": "ours"}}, _VERSION_2),
    "peers-on-one": ({"peers": [_TWO]}, {}),
    "a-wrong-peer-list": ({"peers": [_TWO]}, {"peers": [_NOBODY]}),
    "two-wrong-peer-lists": ({"peers": [_NOBODY]}, {"peers": [_NOBODY]}),
    "another-version": ({}, _VERSION_2),
    "another-router-id": ({}, {"router_id": 43}),
}
_SLOW: Final = pytest.mark.slow("the same with another disagreement")


def _config(terms: Terms) -> dict[str, object]:
    virtual_ip = {
        "addresses": [f"{VIP}/24"],
        "interface": "eth0",
        "router_id": 42,
        "version": 3,
        "advert": "100ms",
    }
    return {"virtual_ips": {"api": virtual_ip | dict(terms)}}


@contextmanager
def _appliance(node: Node, terms: Terms) -> Iterator[Appliance]:
    running = Appliance(_config(terms))
    with node.inside():
        running.start()
    try:
        yield running
    finally:
        running.__exit__(*sys.exc_info())


def _status(appliance: Appliance) -> "subprocess.CompletedProcess[str]":
    return appliance.command("status", check=False)


def _names(status: "subprocess.CompletedProcess[str]", other: Node) -> bool:
    """Say whether a status is no, and names the other node, by its address or at least by its interface's."""
    said = status.stdout.replace(VIP, "")
    return status.returncode == 1 and (other.mac in said or f"{other.address} " in said)


@pytest.mark.promise("docs/troubleshooting.md", "two active nodes say who")
@pytest.mark.parametrize(
    "disagreement",
    ["hmac-on-one", *(pytest.param(each, marks=_SLOW) for each in [*_DISAGREEMENTS][1:])],
)
def test_both_say_who(ground: Field, disagreement: str):
    """Both serve the address, as neither obeys the other: that is a problem on either node, with who."""
    first, second = _DISAGREEMENTS[disagreement]
    with _appliance(ground.one, first) as one, _appliance(ground.two, second) as two:
        wait_until(lambda: len(ground.holders()) == 2, what="both have the address", timeout=30.0)
        for appliance, other in ((one, ground.two), (two, ground.one)):
            wait_until(
                lambda appliance=appliance, other=other: _names(_status(appliance), other),
                what=f"the status names {other.address}",
                timeout=30.0,
            )


@pytest.mark.slow("real timers of several routers")
@pytest.mark.parametrize("seconds", [8, -8])
def test_clocks_that_differ_are_named(
    ground: Field, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: int
):
    """Signatures that are too old or too new for the other one's clock are a problem on both, with who."""
    (tmp_path / "sitecustomize.py").write_text(
        f"import time\nreal = time.time\ntime.time = lambda: real() + {seconds}\n"
    )
    with _appliance(ground.one, {"auth": _HMAC}) as one:
        with monkeypatch.context() as changed:
            changed.setenv("PYTHONPATH", str(tmp_path))
            second = Appliance(_config({"auth": _HMAC}))
            with ground.two.inside():
                second.start()
        try:
            wait_until(lambda: len(ground.holders()) == 2, what="both have the address", timeout=30.0)
            wait_until(lambda: _names(_status(one), ground.two), what="the first one says who", timeout=30.0)
            wait_until(lambda: _names(_status(second), ground.one), what="so does the other", timeout=30.0)
            assert "clock" in _status(one).stdout
        finally:
            second.__exit__(*sys.exc_info())
