"""OpenShift's `monitor` (a stand-in in tests/support/openshift) drives the appliance for an hour.

One loop of it is 6 s there, and 200 times shorter here; `E2E_FULL=1` makes it 600 loops, 3 times shorter.
It renders our template, and OpenShift's own as it is: the appliance then reads haproxy.cfg.
"""

import contextlib
import itertools
import os
import socket
import ssl
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pytest
from support.network.namespaces import Node, Segment
from support.openshift.kubelet import Kubelet
from support.openshift.monitor import has_rules
from support.openshift.node_api import NodeApi
from support.openshift.openshift_templates import RELEASES
from support.openshift.pod_templates import HAPROXY, openshifts_haproxy_template
from support.peers.backend import Backend
from support.processes.processes import kill
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance
from support.values import certificates

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "nft", root=True)]

_FULL: Final = os.environ.get("E2E_FULL") == "1"
_SCALE: Final = 3.0 if _FULL else 200.0
_VIP: Final = "192.0.2.200"
_NAMES: Final = ("master-0", "master-1", "master-2", "master-3")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A template, the file that `monitor` makes of it, and what is wrong with it after a slip of the hand."""

    template: str
    output: str
    interval: str
    slip: str
    loops: int


_KINDS: Final = {
    "ours": Kind(
        template=HAPROXY.read_text(),
        output="appliance.yaml",
        interval="interval: 5s",
        slip="interval: 5 parsecs",
        loops=600 if _FULL else 300,
    ),
    "openshift's": Kind(
        template=openshifts_haproxy_template(RELEASES["4.22"]),
        output="haproxy.cfg",
        interval="inter 5s",
        slip="inter 5parsecs",
        loops=600 if _FULL else 0,
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Masters:
    """`one` has the appliance, `monitor` and the virtual IP; the API servers are on nodes of their own."""

    one: Node
    client: Node
    nodes: dict[str, Node]
    api: NodeApi
    appliance: Appliance
    folder: Path
    kind: "Kind"

    @property
    def template(self) -> Path:
        """The template that `monitor` renders."""
        return self.folder / "template"

    def announce(self, *names: str) -> None:
        """Have the API list these masters."""
        self.api.masters = {name: self.nodes[name].address for name in names}

    def answers(self, number: int) -> Counter[str]:
        """Return who has answered so many clients of the virtual IP; "" is nobody."""
        return Counter(self._ask() for _ in range(number))

    def are_served(self, *names: str) -> bool:
        """Say whether clients get to these masters, to all of them, and to no other."""
        return set(self.answers(5 * len(names))) == set(names)

    def wait_until_served(self, *names: str) -> None:
        """Wait until clients of the virtual IP get to exactly these masters."""
        wait_until(lambda: self.are_served(*names), what=f"{names} serve, and nobody else", timeout=90.0)

    def monitor(self) -> Kubelet:
        """Start `monitor`, and keep it running as a kubelet does."""
        return Kubelet(
            self.one,
            "support.openshift.monitor",
            [
                *(str(self.template), str(self.folder / self.kind.output), f"--api-vips={_VIP}"),
                *(f"--server={self.api.url}", f"--scale={_SCALE}"),
                *(f"--socket={self.folder}/haproxy-master.sock",),
            ],
            log=self.folder / "monitor.log",
            pause=0.3,
        )

    def connection(self) -> socket.socket:
        """Return a connection to the socket that `monitor` uses."""
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(f"{self.folder}/haproxy-master.sock")
        except OSError:
            connection.close()
            raise
        return connection

    def can_connect(self) -> bool:
        """Say whether somebody listens on the socket that `monitor` uses."""
        with contextlib.suppress(OSError), self.connection():
            return True
        return False

    def rules(self) -> bool:
        """Say whether the redirect is there."""
        with self.one.inside():
            return has_rules()

    def _ask(self) -> str:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with contextlib.suppress(OSError):
            with self.client.inside():
                plain = socket.create_connection((_VIP, 6443), timeout=5)
            with plain, context.wrap_socket(plain) as connection:
                connection.sendall(b"who\n")
                return connection.recv(100).decode().strip()
        return ""


@pytest.fixture(params=_KINDS)
def masters(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Masters]:
    """The appliance, which waits for its first configuration, a template, and four API servers."""
    kind = _KINDS[request.param]
    with Segment() as segment, contextlib.ExitStack() as stack:
        one, client = segment.node("one"), segment.node("client")
        one.batch(f"address add {_VIP}/32 dev eth0")
        issued = certificates.issue(tmp_path, "localhost")
        nodes = {name: segment.node(name) for name in _NAMES}
        for name, node in nodes.items():
            with node.inside():
                stack.enter_context(Backend(name, tls_port=6443, certificate=(issued.chain, issued.key)))
        template = tmp_path / "template"
        template.write_text(kind.template)
        api = stack.enter_context(NodeApi(one))
        with one.inside():
            appliance = stack.enter_context(_waiting(tmp_path, kind))
        yield Masters(
            one=one, client=client, nodes=nodes, api=api, appliance=appliance, folder=tmp_path, kind=kind
        )


def _waiting(folder: Path, kind: Kind) -> Appliance:
    """Return an appliance as the pod starts it: there is no configuration, but a socket."""
    foreign = folder / kind.output
    made = Appliance({})
    made.paths.config.unlink()
    made.paths = replace(
        made.paths,
        config=folder / "appliance.yaml",
        haproxy=(foreign,) if foreign.suffix == ".cfg" else (),
        reload_sockets=(folder / "haproxy-master.sock",),
    )
    return made


def changes() -> Iterator[tuple[str, ...]]:
    """Yield lists of masters without end: one is replaced, one added, one gone."""
    for first, second, third in itertools.cycle(itertools.permutations(_NAMES, 3)):
        yield first, second
        yield first, second, third
        yield second, third


def follow(masters: Masters, lists: Iterator[tuple[str, ...]], number: int) -> None:
    """Announce this many lists; each is served before the next one comes."""
    for names in itertools.islice(lists, number):
        masters.announce(*names)
        masters.wait_until_served(*names)


@pytest.mark.slow("an hour of OpenShift's loops, shortened")
@pytest.mark.promise("docs/moving-from-haproxy.md", "OpenShift's `monitor` drives us")
def test_an_hour_of_changes(masters: Masters):
    """Every list of masters is served, whatever goes wrong meanwhile: none is lost."""
    lists = changes()
    masters.announce(*_NAMES)
    with masters.monitor() as monitor, other_clients(masters):
        masters.wait_until_served(*_NAMES)
        follow(masters, lists, 4)
        a_node_without_an_address(masters)
        a_template_that_we_refuse(masters)
        a_template_that_cannot_be_rendered(masters, monitor)
        follow(masters, lists, 2)
        the_lost_reload(masters, monitor)
        somebody_removes_the_socket(masters)
        the_api_is_away(masters)
        follow(masters, lists, 2)
        our_container_is_killed(masters, monitor)
        follow(masters, lists, 2)
        no_master_is_left(masters, monitor)
        while masters.api.asked < masters.kind.loops:
            follow(masters, lists, 1)
        wait_until(lambda: masters.appliance.status()["ok"], what="nothing is wrong", timeout=60.0)
    assert monitor.events("stopped"), "monitor ended as it should, and took its rules away"
    assert not masters.rules()


@contextlib.contextmanager
def other_clients(masters: Masters) -> Iterator[None]:
    """Clients that hold the socket all the time: one says much and reads nothing, one says nonsense."""
    with contextlib.closing(masters.connection()) as talker, contextlib.closing(masters.connection()) as liar:
        talker.setblocking(False)  # noqa: FBT003  # its only parameter
        for _ in range(5):
            talker.sendall(b"reload\n" * 4 + b"what\n" * 200)
        liar.sendall(b"\x00\xff" * 1000)  # a line without an end
        yield


def a_node_without_an_address(masters: Masters) -> None:
    """A node that has just joined has none: it is left out, and what else changes is served."""
    masters.announce("master-0", "master-1")
    masters.api.masters = {**masters.api.masters, "master-9": ""}
    masters.wait_until_served("master-0", "master-1")


def a_template_that_we_refuse(masters: Masters) -> None:
    """The last good configuration serves, `status` names the error, and the next good one is obeyed."""
    good = masters.template.read_text()
    masters.template.write_text(good.replace(masters.kind.interval, masters.kind.slip))
    masters.announce("master-2", "master-3")
    masters.appliance.wait_for_event("reload-refused", timeout=60.0)
    masters.wait_until_served("master-0", "master-1")
    wait_until(  # what was refused first may be a file that was half written
        lambda: "parsecs" in masters.appliance.command("status", check=False).stdout,
        what="status names the error",
        timeout=60.0,
    )
    masters.template.write_text(good)
    masters.announce("master-1", "master-2")
    masters.wait_until_served("master-1", "master-2")


def a_template_that_cannot_be_rendered(masters: Masters, monitor: Kubelet) -> None:
    """Then `monitor` itself ends, again and again, and the file stays as it was."""
    good = masters.template.read_text()
    masters.template.write_text(good + "{{ .Nonsense }}")
    masters.announce("master-3")
    wait_until(lambda: monitor.ends, what="monitor has ended", timeout=60.0)
    masters.wait_until_served("master-1", "master-2")
    masters.template.write_text(good)
    masters.wait_until_served("master-3")


def the_lost_reload(masters: Masters, monitor: Kubelet) -> None:
    """Our reload program dies: `monitor` writes the file, fails to say so, and says nothing afterwards."""
    ends = len(monitor.ends)
    pid = masters.appliance.kill("reload")
    masters.announce("master-0", "master-3")
    masters.wait_until_served("master-0", "master-3")
    masters.appliance.wait_for_restart("reload", pid)
    wait_until(lambda: len(monitor.ends) > ends, what="monitor's line was lost with its pipe", timeout=60.0)
    wait_until(lambda: monitor.events("unchanged"), what="monitor has nothing to say", timeout=60.0)


def somebody_removes_the_socket(masters: Masters) -> None:
    """Who holds a connection goes on with it, and the socket is there again for those that come."""
    (masters.folder / "haproxy-master.sock").unlink()
    masters.announce("master-1", "master-3")
    masters.wait_until_served("master-1", "master-3")
    wait_until(masters.can_connect, what="the socket is there again", timeout=60.0)
    masters.announce("master-0", "master-3")
    masters.wait_until_served("master-0", "master-3")


def the_api_is_away(masters: Masters) -> None:
    """A Kubernetes API that answers errors changes nothing."""
    masters.api.failing = True
    masters.announce("master-1")
    asked = masters.api.asked
    wait_until(lambda: masters.api.asked > asked + 10, what="monitor has asked ten times", timeout=90.0)
    masters.wait_until_served("master-0", "master-3")
    masters.api.failing = False
    masters.wait_until_served("master-1")


def our_container_is_killed(masters: Masters, monitor: Kubelet) -> None:
    """Everything of ours dies, a change comes while nobody is there, and the next container serves it."""
    ends = len(monitor.ends)
    appliance = masters.appliance
    kill(appliance.pid)
    for pid in appliance.processes():
        kill(pid)
    appliance.remove_sockets()
    masters.announce("master-0", "master-2")
    wait_until(lambda: len(monitor.ends) > ends, what="monitor has ended", timeout=60.0)
    with masters.one.inside():
        appliance.start()
    masters.wait_until_served("master-0", "master-2")


def no_master_is_left(masters: Masters, monitor: Kubelet) -> None:
    """The endpoint that `monitor` asks says so: it takes its rules away, and adds them when one is back."""
    masters.announce()
    wait_until(lambda: not masters.rules(), what="the redirect is gone", timeout=90.0)
    added = len(monitor.events("rule-added"))
    masters.announce("master-1")
    masters.wait_until_served("master-1")
    assert len(monitor.events("rule-added")) > added
