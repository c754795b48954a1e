"""OpenShift's `dynkeepalived` (a stand-in in tests/support/openshift) drives us beside a real keepalived.

Both pods of a master run on one node: in HAProxy's place with `monitor`, in keepalived's with
`dynkeepalived`. The other node has Debian's keepalived, with a priority between ours with and without the
load balancer.
"""

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pytest
from support.network.namespaces import Node
from support.openshift.kubelet import Kubelet
from support.openshift.node_api import NodeApi
from support.openshift.openshift_templates import RELEASES, keepalived_conf
from support.openshift.pod_templates import HAPROXY, KEEPALIVED
from support.peers.backend import Backend
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance
from support.values import certificates
from support.vrrp.keepalived import Instance, Keepalived
from support.vrrp.vrrp_field import VIP, Field

from appliance.model.router_ids import router_ids

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "nft", "keepalived", "tcpdump", root=True)]

_SCALE: Final = 50.0
_RULES: Final = "/var/run/keepalived/iptables-rule-exists"

# OpenShift's bootstrap node: a higher priority than any master has, and no checks.
_BOOTSTRAP: Final = """\
{{ if .EnableUnicast }}# unicast_peer{{ end }}
virtual_ips:
  api:
    addresses: ["{{ .Cluster.APIVIP }}/{{ .Cluster.VIPNetmask }}"]
    interface: {{ .VRRPInterface }}
    router_id: {{ .Cluster.APIVirtualRouterID }}
    priority: 70
    auth: { pass: {{ .Cluster.Name }}_api_vip }
    source: {{ .NonVirtualIP }}
    peers: [
{{- range .LBConfig.Backends }}{{ if ne .Address $.NonVirtualIP }}"{{ .Address }}", {{ end }}{{ end }}]
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """One pod of ours with OpenShift's program in it, in a folder of its own."""

    node: Node
    folder: Path
    template: Path
    appliance: Appliance

    @property
    def marker(self) -> Path:
        """The file by which `dynkeepalived` says that the redirect is there."""
        return self.folder / "iptables-rule-exists"

    @property
    def monitor_conf(self) -> Path:
        """Where the machine-config operator says the mode."""
        return self.folder / "monitor.conf"

    def run(self, program: str, *arguments: str) -> Kubelet:
        """Start the pod's other container."""
        files = (str(self.template), str(self.appliance.paths.config), f"--socket={self.folder}/socket")
        log = self.folder / "log"
        module = f"support.openshift.{program}"
        return Kubelet(self.node, module, [*files, f"--scale={_SCALE}", *arguments], log=log, pause=0.3)

    def dynkeepalived(self, api: NodeApi, *arguments: str) -> Kubelet:
        """Start `dynkeepalived`."""
        return self.run(
            "dynkeepalived",
            *(f"--server={api.url}", f"--own={self.node.address}", f"--vips={VIP},192.0.2.101"),
            *(f"--marker={self.marker}", f"--monitor-conf={self.monitor_conf}", *arguments),
        )


def pod(node: Node, folder: Path, *, template: str, stack: ExitStack, keepalived_conf: bool = False) -> Pod:
    """Make a pod whose paths lie in a folder of the test; it waits for its first configuration."""
    folder.mkdir()
    made = folder / "template"
    made.write_text(template.replace(_RULES, f"{folder}/iptables-rule-exists"))
    appliance = Appliance({})
    appliance.paths.config.unlink()
    appliance.paths = replace(
        appliance.paths,
        config=folder / "appliance.yaml",
        keepalived=folder / "keepalived.conf" if keepalived_conf else None,
        reload_sockets=(folder / "socket",),
    )
    with node.inside():
        stack.enter_context(appliance)
    return Pod(node=node, folder=folder, template=made, appliance=appliance)


@pytest.fixture
def api(ground: Field) -> Iterator[NodeApi]:
    """The Kubernetes API, with both nodes as masters."""
    with NodeApi(ground.one) as made:
        made.masters = {"master-0": ground.one.address, "master-1": ground.two.address}
        yield made


@pytest.fixture
def local_api(ground: Field, tmp_path: Path) -> Iterator[Backend]:
    """The API server of node one."""
    issued = certificates.issue(tmp_path, "localhost")
    with (
        ground.one.inside(),
        Backend("master-0", tls_port=6443, certificate=(issued.chain, issued.key)) as made,
    ):
        yield made


def keepalived(ground: Field, *, priority: int, **changes: object) -> Keepalived:
    """Run the other master's keepalived, by unicast as OpenShift has it."""
    made = Instance(
        version=2,
        router_id=router_ids("ocp4").api,
        priority=priority,
        advert=1,
        addresses=(f"{VIP}/32",),
        password="ocp4_api",  # noqa: S106  # the first 8 bytes of the template's
        peers=(ground.one.address,),
        source=ground.two.address,
    )
    return Keepalived(ground.two, replace(made, **changes))  # type: ignore[arg-type]  # fields of it


@pytest.mark.slow("OpenShift's loops and time-outs, shortened")
@pytest.mark.promise("docs/moving-from-haproxy.md", "OpenShift's `dynkeepalived` drives us")
def test_the_redirect_decides_who_is_active(ground: Field, api: NodeApi, local_api: Backend, tmp_path: Path):
    """Masters up, rules, marker, priority 65: the address comes; no master, no rules, no marker: it goes."""
    with ExitStack() as stack:
        stack.enter_context(keepalived(ground, priority=55)).wait_for("MASTER")
        first, second = tmp_path / "haproxy", tmp_path / "keepalived"
        quick = HAPROXY.read_text().replace("interval: 5s, timeout: 10s", "interval: 1s, timeout: 1s")
        haproxy = pod(ground.one, first, template=quick, stack=stack)
        vrrp = pod(ground.one, second, template=KEEPALIVED.read_text(), stack=stack)
        dynkeepalived = stack.enter_context(vrrp.dynkeepalived(api))
        wait_until(lambda: dynkeepalived.events("reload"), what="dynkeepalived has rendered", timeout=60.0)
        vrrp.appliance.wait_for_event("vrrp-state", lambda event: event["router"] == "api-0", timeout=60.0)
        assert ground.holders() == [ground.two]
        stack.enter_context(haproxy.run("monitor", f"--server={api.url}", f"--api-vips={VIP}"))
        wait_until(vrrp.marker.exists, what="the marker is there", timeout=60.0)
        wait_until(lambda: ground.holders() == [ground.one], what="the address has come", timeout=60.0)
        local_api.stop()
        wait_until(lambda: not vrrp.marker.exists(), what="the marker is gone", timeout=90.0)
        wait_until(lambda: ground.holders() == [ground.two], what="the address has gone", timeout=60.0)


@pytest.mark.slow("an hour of OpenShift's loops, shortened")
def test_the_bootstrap_node_stops_and_comes_back(
    ground: Field, api: NodeApi, local_api: Backend, tmp_path: Path
):
    """Priority 70 without checks wins; its API dies: `stop`, again and again; it answers: `reload`."""
    with ExitStack() as stack:
        bootstrap = pod(ground.one, tmp_path / "bootstrap", template=_BOOTSTRAP, stack=stack)
        stack.enter_context(keepalived(ground, priority=68)).wait_for("MASTER")
        program = stack.enter_context(bootstrap.dynkeepalived(api, "--bootstrap", "--check-interval=5"))
        wait_until(lambda: ground.holders() == [ground.one], what="the bootstrap node wins", timeout=60.0)
        local_api.ready(500)
        wait_until(lambda: ground.holders() == [ground.two], what="it has left", timeout=60.0)
        wait_until(lambda: len(program.events("stop")) > 3, what="it is told so again", timeout=60.0)
        assert ground.holders() == [ground.two]
        local_api.ready(200)
        wait_until(lambda: ground.holders() == [ground.one], what="it is back", timeout=60.0)
        assert program.ends == []


@pytest.mark.slow("an hour of OpenShift's loops, shortened")
def test_openshifts_own_keepalived_conf(ground: Field, tmp_path: Path):
    """The file of a release, with its scripts, is obeyed as it is: we win against a keepalived, and leave."""
    address, folder = "192.0.2.5", tmp_path / "keepalived"
    release = RELEASES["4.22"]
    with ExitStack() as stack:
        addresses = (f"{address}/32",)
        other = keepalived(ground, priority=30, router_id=117, password="prod_api", addresses=addresses)  # noqa: S106  # the file's
        stack.enter_context(other).wait_for("MASTER")
        pod(ground.one, folder, template="", stack=stack, keepalived_conf=True)
        text = keepalived_conf(
            release, own=ground.one.address, peers=(ground.one.address, ground.two.address)
        )
        text = text.replace("br-ex", "eth0").replace("/etc/keepalived", str(folder))
        for name in ("chk_ocp_script", "chk_ocp_script_both", "chk_mcs", "chk_default_ingress"):
            script = folder / f"{name}.sh"
            script.write_text("#!/bin/sh\nexit 1\n")
            script.chmod(0o755)
        (folder / "keepalived.conf").write_text(text)
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(f"{folder}/socket")
            connection.sendall(b"reload\n")
            ground.wait_for_holder(ground.one, address)
            connection.sendall(b"stop\n")
            ground.wait_for_holder(ground.two, address)
