"""Two machines, a client and four servers, with the addresses that the pages of docs/ have."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from support.documents.walks import Step
from support.machines.typed_machine import TypedMachine
from support.network.namespaces import Segment
from support.peers.backend import Backend
from support.processes.waiting import wait_until
from support.values.certificates import issue

CONFIGURATION: Final = "/etc/appliance/appliance.yaml"
VIRTUAL_IP: Final = "10.0.0.200"
_LOOKS: Final = ("appliance status", "appliance fleet status", "appliance vip status", "curl ")
"""What a reader looks at until it is as the page says."""

_PATIENCE: Final = 60.0


class TypedPair:
    """Types steps on the machine that each names."""

    def __init__(self, machines: dict[str, TypedMachine]) -> None:
        self.machines = machines

    def configure(self, text: str) -> None:
        """Write the configuration on both of the pair."""
        for name in ("lb-0", "lb-1"):
            self.machines[name].write(CONFIGURATION, text)

    def type(self, step: Step) -> None:
        """Do what a step says; a look is repeated until it succeeds."""
        machine = self.machines[step.machine]
        match step.command.split():
            case ["scp", path, target]:
                name, _, folder = target.partition("@")[2].partition(":")
                self.machines[name].write(f"{folder}{Path(path).name}", machine.read(path))
            case _ if step.command.startswith(_LOOKS):
                wait_until(
                    lambda: machine.succeeds(step.command), what=str(step), timeout=_PATIENCE, pause=0.5
                )
            case _:
                machine.type(step.command)

    def holder(self) -> str:
        """Return who of the pair has the virtual IP, "" where nobody or both have it."""
        found = [
            name
            for name, each in self.machines.items()
            if name.startswith("lb-") and each.node.holds(VIRTUAL_IP)
        ]
        return found[0] if len(found) == 1 else ""

    def wait_for_holder(self, name: str) -> None:
        """Wait until one of them, and only this one, has the virtual IP."""
        wait_until(lambda: self.holder() == name, what=f"{name} has the virtual IP", timeout=_PATIENCE)

    def serves(self) -> bool:
        """Return whether a client is answered at the virtual IP now."""
        return self.machines["client"].succeeds(f"curl -sk --max-time 5 https://{VIRTUAL_IP}:9445/readyz")


@contextmanager
def typed_pair(folder: Path) -> Iterator[TypedPair]:
    """Have them on one network; nothing runs yet but the servers."""
    files = issue(folder, "localhost")
    with Segment() as segment, ExitStack() as stack:
        machines = {}
        for name, address in (("lb-0", "10.0.0.2"), ("lb-1", "10.0.0.3"), ("client", "10.0.0.50")):
            node = segment.node(name)
            node.ip("address", "flush", "dev", "eth0", "scope", "global")
            node.ip("address", "add", f"{address}/24", "dev", "eth0")
            machines[name] = stack.enter_context(TypedMachine(node, folder / name))
        servers = segment.node("servers")
        for number in range(4):
            host = f"10.0.0.{11 + number}"
            servers.ip("address", "add", f"{host}/24", "dev", "eth0")
            with servers.inside():
                stack.enter_context(
                    Backend(
                        f"master-{number}", host=host, tls_port=6443, certificate=(files.chain, files.key)
                    )
                )
        yield TypedPair(machines)
