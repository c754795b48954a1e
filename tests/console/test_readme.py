"""README and docs/ do not lie: their configurations are good, their examples are what is printed."""

import re
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner
from support.documents.pages import page, yaml_blocks

from appliance.console.command import main
from appliance.console.demo.demo_ports import DEMO_PORTS, configuration
from appliance.model.paths import NODE_VARIABLE, Paths
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.files.packaged import packaged
from appliance.net.sources.judging import judge

pytestmark = pytest.mark.pure

FIRST: Final = yaml_blocks("configuring")[0]
*VIRTUAL_IPS, LINGER, SOURCE = yaml_blocks("virtual-ips")
"""The configuration to start from."""


def judged(path: Path, text: str) -> Snapshot:
    """Return the snapshot of a configuration that must have neither errors nor warnings."""
    path.write_text(text)
    found = judge(Paths(config=path), number=1)
    assert found.errors == ()
    assert found.warnings == ()
    assert found.snapshot is not None
    return found.snapshot


def test_first_configuration_is_good(tmp_path: Path):
    """The configuration to start from is accepted as it stands."""
    snapshot = judged(tmp_path / "appliance.yaml", FIRST)
    assert {group.name for group in snapshot.groups} == {"api", "ingress"}
    assert {pool.name for pool in snapshot.pools} == {
        "masters", "machine-config", "routers-http", "routers-https",
    }  # fmt: skip


@pytest.mark.parametrize(
    "text", VIRTUAL_IPS, ids=["pair", "nodes", "spread", "keepalived", "elsewhere", "routes", "openshift"]
)
def test_virtual_ips_can_be_added(tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch):
    """Each example of virtual IPs is good behind the first configuration."""
    monkeypatch.setenv(NODE_VARIABLE, "lb-0")
    assert judged(tmp_path / "appliance.yaml", FIRST + text).virtual_routers


def test_shared_ips_can_be_added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The example of three nodes is good behind the first configuration."""
    text = yaml_blocks("shared-ips")[0]
    monkeypatch.setenv(NODE_VARIABLE, "lb-0")
    assert judged(tmp_path / "appliance.yaml", FIRST + text).shared_ips


def test_connections_can_move_with_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The example of `linger` is good behind the example of a pair."""
    monkeypatch.setenv("APPLIANCE_NODE", "lb-0")
    assert judged(tmp_path / "appliance.yaml", FIRST + VIRTUAL_IPS[0] + LINGER).linger


def test_servers_can_be_reached_from_a_virtual_ip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The example of `source` is a whole pool, whose two nodes have ports of their own."""
    monkeypatch.setenv(NODE_VARIABLE, "lb-0")
    (tmp_path / "appliance.yaml").write_text(SOURCE)
    found = judge(Paths(config=tmp_path / "appliance.yaml"), number=1)
    assert found.errors == ()
    assert found.snapshot is not None
    assert [each.source_ports for each in found.snapshot.pools] == [(16384, 38691)]


def test_a_frontend_can_take_the_api_server_s_connections(tmp_path: Path):
    """The example of a redirect is good in place of the first configuration's frontend."""
    line = next(each for each in FIRST.splitlines(keepends=True) if each.strip().startswith("kube-api:"))
    found = judged(tmp_path / "appliance.yaml", FIRST.replace(line, yaml_blocks("redirect")[0])).group("api")
    assert found is not None
    assert [len(each.redirect.sources) for each in found.frontends if each.redirect] == [2]


def test_servers_can_be_discovered(tmp_path: Path):
    """The example of discovery is good as it stands."""
    found = judged(tmp_path / "appliance.yaml", yaml_blocks("discovery")[0])
    assert [str(each) for each in found.sources] == ["masters", "routers default", "nodes ingress=edge"]


@pytest.mark.parametrize("ipv6", [True, False])
@pytest.mark.parametrize("offset", [0, 1000])
def test_demo_configuration_is_good(tmp_path: Path, offset: int, ipv6: bool):  # noqa: FBT001  # a parameter of the test
    """The demo's configuration is accepted with every port moved, and without IPv6."""
    snapshot = judged(tmp_path / "appliance.yaml", configuration(offset=offset, ipv6=ipv6))
    binds = [bind for group in snapshot.groups for frontend in group.frontends for bind in frontend.binds]
    assert {bind.port - offset for bind in binds} == {9444, 9445, 9454, 8080, 8443}
    assert snapshot.stats is not None
    assert snapshot.stats.bind.port - offset == 8404
    assert {bind.host for bind in binds} == ({"127.0.0.1", "::1"} if ipv6 else {"127.0.0.1"})


def test_every_port_of_the_demo_moves():
    """No number that looks like a port in the demo's file escapes the offset."""
    text = packaged("demo.yaml").read_text()
    assert set(re.findall(r"\b\d{4,5}\b", text)) == set(DEMO_PORTS.findall(text))


def test_router_ids_are_those_shown():
    """The example of vr-ids is what is printed."""
    assert CliRunner().invoke(main, ["vr-ids", "ocp4"]).output in page("operating")
