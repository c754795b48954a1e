"""Three nodes, their router with FRR, a client behind it and servers, as docs/three-nodes.md has them."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from support.announce.host_daemons import HostFrr
from support.documents.walks import Step
from support.machines.typed_machine import TypedMachine
from support.machines.typed_pair import CONFIGURATION
from support.network.namespaces import INTERFACE, Node, Segment
from support.peers.backend import Backend
from support.processes.waiting import wait_until
from support.values.certificates import issue

NODES: Final = {"lb-0": "10.0.0.11", "lb-1": "10.0.0.12", "lb-2": "10.0.0.13"}
SHARED: Final = "198.51.100.10"
_ROUTER: Final = "10.0.0.1"
_UPLINK: Final = "out0"
_LOOKS: Final = ("appliance status", "appliance bgp status", "curl ")
"""What a reader looks at until it is as the page says."""

_PATIENCE: Final = 60.0


class TypedThree:
    """Types steps on the machine that each names; `router` is FRR."""

    def __init__(self, machines: dict[str, TypedMachine], router: HostFrr, client: Node) -> None:
        self.machines = machines
        self.router = router
        self._client = client

    def configure(self, text: str) -> None:
        """Write the configuration on all nodes."""
        for each in self.machines.values():
            each.write(CONFIGURATION, text)

    def type(self, step: Step) -> None:
        """Do what a step says; a look is repeated until it succeeds."""
        match step.command.split():
            case ["scp", path, target]:
                name, _, folder = target.partition("@")[2].partition(":")
                content = self.machines[step.machine].read(path)
                self.machines[name].write(f"{folder}{Path(path).name}", content)
            case _ if step.command.startswith(_LOOKS):
                wait_until(lambda: self._succeeds(step), what=str(step), timeout=_PATIENCE, pause=0.5)
            case _ if step.machine in self.machines:
                self.machines[step.machine].type(step.command)
            case _:
                self.router.node.run(["sh", "-c", step.command])

    def wait_for_hops(self, *names: str) -> None:
        """Wait until the router sends packets to exactly these nodes."""
        hops = frozenset(NODES[each] for each in names)
        wait_until(
            lambda: self.router.next_hops(SHARED) == hops,
            what=f"the router has {', '.join(names)}",
            timeout=_PATIENCE,
        )

    def _succeeds(self, step: Step) -> bool:
        if step.machine != "client":
            return self.machines[step.machine].succeeds(step.command)
        command = step.command.replace("curl ", "curl -sf --max-time 5 ")
        with_status = self._client.run(["sh", "-c", f"{command} >/dev/null; echo $?"], check=False)
        return with_status.strip() == "0"


@contextmanager
def typed_three(folder: Path, frr: str) -> Iterator[TypedThree]:
    """Have them on their networks; `frr` is typed into the router, and nothing runs yet but the servers."""
    files = issue(folder, "localhost")
    with ExitStack() as stack:
        inside, outside = (stack.enter_context(Segment()) for _ in range(2))
        router, client = inside.node("router"), outside.node("client")
        _address(router, _ROUTER)
        _join(outside, router, client)
        machines = {}
        for name, address in NODES.items():
            node = inside.node(name)
            _address(node, address)
            node.ip("route", "add", "default", "via", _ROUTER)
            machines[name] = stack.enter_context(TypedMachine(node, folder / name))
        servers = inside.node("servers")
        for number in range(3):
            host = f"10.0.0.{21 + number}"
            servers.ip("address", "add", f"{host}/24", "dev", INTERFACE)
            with servers.inside():
                made = Backend(
                    f"master-{number}", host=host, tls_port=6443, certificate=(files.chain, files.key)
                )
                stack.enter_context(made)
        daemon = stack.enter_context(HostFrr(router, frr))
        yield TypedThree(machines, daemon, client)


def _address(node: Node, address: str) -> None:
    node.ip("address", "flush", "dev", INTERFACE, "scope", "global")
    node.ip("address", "add", f"{address}/24", "dev", INTERFACE)


def _join(outside: Segment, router: Node, client: Node) -> None:
    """Connect the router to the client's network."""
    outside.batch(
        f"link add uplink type veth peer name {_UPLINK} netns {router.name}",
        "link set uplink master bridge up",
    )
    router.batch(f"link set {_UPLINK} up", f"address add 203.0.113.254/24 dev {_UPLINK}")
    _address(client, "203.0.113.1")
    client.ip("route", "add", "default", "via", "203.0.113.254")
