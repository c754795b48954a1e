"""A keepalived.conf with a virtual server by NAT, obeyed as it is: the kernel forwards to its servers."""

from pathlib import Path

import pytest
from support.forward.forward_field import PORT, SERVER_PORT, VIPS, ForwardField
from support.processes.waiting import wait_until

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.needs("ip", "nft", root=True),
    pytest.mark.slow("whole appliances on a segment of their own"),
]


def conf(balanced: ForwardField, *lines: str, sorry: str = "s3") -> str:
    """Return a keepalived.conf with a virtual server on the first address; `sorry` is its last resort."""
    hosts = {name: node.address for name, node in balanced.servers.items()}
    servers = "".join(
        f"real_server {host} {SERVER_PORT} {{\nweight 1\nTCP_CHECK {{\nconnect_timeout 1\n}}\n}}\n"
        for name, host in hosts.items()
        if name != sorry
    )
    own = ("delay_loop 0.2", "delay_before_retry 0.2", "lb_algo wrr", "lb_kind NAT", "protocol TCP", *lines)
    last = f"sorry_server {hosts[sorry]} {SERVER_PORT}\n"
    return f"virtual_server {VIPS[0]} {PORT} {{\n" + "\n".join(own) + f"\n{last}{servers}}}\n"


@pytest.mark.promise("docs/foreign-files.md", "the kernel forwards in IPVS's place")
def test_a_virtual_server_is_served(balanced: ForwardField, tmp_path: Path):
    """In turn by the servers that are up, by the sorry server when none is; a reload obeys the new file."""
    path = tmp_path / "keepalived.conf"
    path.write_text(conf(balanced))
    config = {"source": {"keepalived": str(path)}, "defaults": {"drain": "2s"}}
    with balanced.appliance(config) as appliance:
        balanced.wait_for("s1", "s2")
        balanced.stop_server("s1")
        balanced.wait_for("s2")
        balanced.stop_server("s2")
        balanced.wait_for("s3")
        balanced.start_server("s1")
        balanced.wait_for("s1")
        balanced.start_server("s2")
        balanced.wait_for("s1", "s2")
        path.write_text(conf(balanced, "persistence_timeout 50"))
        assert appliance.reload(config)["ok"]
        wait_until(lambda: len(balanced.shares(10)) == 1, what="a client stays with its server")
        path.write_text(conf(balanced, "quorum_down /bin/false"))
        assert not appliance.reload(config)["ok"]
        assert len(balanced.shares(10)) == 1
