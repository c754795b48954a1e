"""A pair that an administrator runs with `appliance fleet`, by real sshds, on a segment of its own."""

from pathlib import Path
from typing import Final

import pytest
from support.machines.ssh_between import ssh_between
from support.machines.typed_pair import typed_pair
from support.processes.waiting import wait_until

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.needs("ip", "curl", "unshare", "nsenter", "ssh", "sshd", root=True),
    pytest.mark.slow("whole appliances on a segment of their own"),
]

_CONFIGURATION: Final = """
nodes: { lb-0: { address: 10.0.0.2 }, lb-1: { address: 10.0.0.3 } }
api:
  frontends:
    kube-api: { bind: ["[::]:9445"], pool: masters }
pools:
  masters:
    check: { type: https, path: /readyz, interval: 2s }
    servers:
      master-0: { address: "10.0.0.11:6443" }
      master-1: { address: "10.0.0.12:6443" }
virtual_ips:
  api:
    addresses: [10.0.0.200/24]
    interface: eth0
    router_id: 51
    priority: { lb-0: 150, lb-1: 100 }
    track: { serving: { program: proxy-api } }
defaults: { drain: 60s }
"""


@pytest.mark.promise("docs/fleet.md", "one file makes a pair, and changes it")
def test_one_file_makes_a_pair(tmp_path: Path):
    """It is pushed before anything runs, changed while clients are served, and reaches one that was away."""
    file = tmp_path / "appliance.yaml"
    file.write_text(_CONFIGURATION)
    with typed_pair(tmp_path) as pair:
        ssh_between(pair, tmp_path)
        client = pair.machines["client"]
        assert "lb-1: accepted (no appliance runs there)" in client.type(f"appliance fleet push {file}")
        for name in ("lb-1", "lb-0"):
            pair.machines[name].start()
        pair.wait_for_holder("lb-0")
        status = f"appliance fleet status --config {file}"
        wait_until(lambda: client.succeeds(status), what="all is well", timeout=60.0, pause=0.5)
        lines = client.type(status).splitlines()
        assert [(each.split()[0], each.split()[-1]) for each in lines[1:]] == [("lb-0", "api"), ("lb-1", "-")]

        file.write_text(_CONFIGURATION.replace("60s", "61s"))
        client.type(f"appliance fleet push {file}")
        assert (pair.holder(), pair.serves()) == ("lb-0", True)

        away = pair.machines["lb-1"].node
        file.write_text(_CONFIGURATION.replace("60s", "62s"))
        away.ip("link", "set", "eth0", "down")
        assert not client.succeeds(f"appliance fleet push {file}")
        assert "62s" in pair.machines["lb-0"].read("/etc/appliance/appliance.yaml")
        away.ip("link", "set", "eth0", "up")
        wait_until(
            lambda: client.succeeds(f"appliance fleet push {file}"), what="it has it", timeout=60.0, pause=0.5
        )
        assert "62s" in pair.machines["lb-1"].read("/etc/appliance/appliance.yaml")
        wait_until(
            lambda: pair.machines["lb-0"].succeeds("appliance fleet status"),
            what="a node sees it too",
            timeout=60.0,
            pause=0.5,
        )
        assert (pair.holder(), pair.serves()) == ("lb-0", True)
