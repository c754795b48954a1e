"""Two or more nodes with `linger` whose virtual IPs, one of each family, move by every planned way there is.

One node serves both at a time. The nodes' servers are echoers, for `CheckedStreams` of a client.
"""

import contextlib
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Self

from support.forward.forward_field import let_forward, wait_for_servers
from support.linger.linger_field import PORT, SERVER_PORT, VIP, VIP6, LingerNode, config, listed
from support.network import echoer
from support.network.namespaces import Node, Segment
from support.processes.waiting import wait_until
from support.supervisor.appliance import Values

import appliance

VIPS: Final = (VIP, VIP6)
NAMES: Final = ("one", "two", "three")
ANOTHER_RELEASE: Final = "0.0.9"
"""What the package calls itself that an upgraded node runs."""

_FAMILIES: Final = ("four", "six")
_HIGHEST: Final = 150  # priority at the start
_PATIENCE: Final = 60.0


class MovingNodes:
    """The nodes by name, the first of them active. Use it as a context manager."""

    def __init__(self, segment: Segment, names: tuple[str, ...], *, server: Node | None = None) -> None:
        """Where a `server` is given the nodes' servers are there, and the kernels forward to them."""
        self.nodes: dict[str, LingerNode] = {}
        self.priorities = {name: _HIGHEST - at for at, name in enumerate(names)}
        self._changes: dict[str, dict[str, object]] = {}
        self._stack = contextlib.ExitStack()
        for name in names:
            node = segment.node(name)
            self._changes[name] = {} if server is None else _forwarded(node, name, server)
            self.nodes[name] = LingerNode(node, name, self._config(name), server=echoer.__file__)

    def __enter__(self) -> Self:
        with self._stack:
            for each in self.nodes.values():
                self._stack.enter_context(each)
                if any(self._changes.values()):
                    wait_for_servers(each.appliance, *_FAMILIES)
            self.settle(next(iter(self.nodes)))
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *given: object) -> None:
        self._stack.__exit__(*given)  # type: ignore[arg-type]  # as it came

    @property
    def active(self) -> str:
        """Name of the node that serves both addresses."""
        return next(name for name in self._taking_part() if self._serves(name))

    @property
    def best(self) -> str:
        """Name of the running node with the highest priority."""
        return max(self._taking_part(), key=lambda name: self.priorities[name])

    def settle(self, expected: str = "") -> str:
        """Wait until one node serves both addresses and all know; return its name.

        `expected` is its name where only that one is right.
        """
        return wait_until(
            lambda: self._settled(expected), what=f"{expected or 'one node'} serves", timeout=_PATIENCE
        )

    # Moves. Each returns who serves now.

    def move(self) -> str:
        """`appliance vip move`."""
        before = self.active
        self.nodes[before].move()
        return self._moved(before)

    def reclaim(self) -> str:
        """`appliance vip reclaim` on the node of highest priority, which preempts."""
        self.nodes[self.best].appliance.command("vip", "reclaim", "api")
        return self.settle(self.best)

    def raise_priority(self) -> str:
        """Reload the backup of the lowest priority with the highest of all, so that it preempts."""
        before = self.active
        name = min(self._others(before), key=lambda each: self.priorities[each])
        self.priorities[name] = max(self.priorities.values()) + 1
        self.reload(name)
        self.nodes[name].appliance.command("vip", "reclaim", "api")  # it may have been moved away from it
        return self.settle(name)

    def reload(self, name: str, **changes: object) -> None:
        """Reload a node with its priority as it is now, and further changes of its configuration."""
        self._changes[name].update(changes)
        answer = self.nodes[name].appliance.reload(self._config(name))
        assert answer["ok"], answer

    def leave(self) -> str:
        """`appliance leave --wait`, which does not return while connections are left."""
        before = self.active
        said = self.nodes[before].appliance.command("leave", "--wait", "--timeout", "0", check=False)
        assert said.returncode == 1, said.stdout + said.stderr
        assert "connections are left" in said.stderr, said.stderr
        return self._moved(before)

    def tell_to_end(self, number: signal.Signals) -> str:
        """Send the active node's appliance TERM, or USR1 as `systemctl stop` can do."""
        before = self.active
        self.nodes[before].appliance.signal(number)
        return self._moved(before)

    def stop_empty(self, name: str) -> None:
        """Wait until `leave --wait` says that nothing is left on a node, and stop it."""
        node = self.nodes[name]
        said = node.appliance.command("leave", "--wait", "--timeout", str(_PATIENCE - 10), check=False)
        assert said.returncode == 0, said.stderr + node.node.run(["ss", "-tnoe"])
        assert not node.kept(VIP)
        assert node.appliance.stop(patience=30.0) == 0

    def wait_for_end(self, name: str) -> None:
        """Wait until a node that was told to end has ended."""
        assert self.nodes[name].appliance.wait(patience=_PATIENCE) == 0

    def start(self, name: str, *, release: Path | None = None) -> str:
        """Start a node that has ended, of another release where one is given; return who serves then.

        A node that was left keeps out of it, over a restart too, until the reload.
        """
        node = self.nodes[name]
        through = () if release is None else ("env", f"PYTHONPATH={release}")
        with node.node.inside():
            node.appliance.start(through=through)
        if release is not None:
            assert node.appliance.ask("reload", "status")["version"] == ANOTHER_RELEASE
        node.appliance.command("reload")
        return self.settle(self.best)

    def crash(self, name: str) -> str:
        """Kill a node's supervisord and nothing else, start another one, and return who serves then."""
        appliance = self.nodes[name].appliance
        before = {program: appliance.program_pid(program) for program in ("vrrp", "linger")}
        with self.nodes[name].node.inside():
            appliance.crash()
        for program, pid in before.items():
            appliance.wait_for_restart(program, pid or 0)
        return self.settle()

    def connections(self) -> dict[str, int]:
        """Return how many connections each node keeps of addresses that it has left."""
        return {
            name: sum(int(str(node.kept(vip).get("connections", 0))) for vip in VIPS)
            for name, node in self.nodes.items()
        }

    def _config(self, name: str) -> dict[str, object]:
        made = config(priority=self.priorities[name], defaults={"drain": f"{_PATIENCE:g}s"})
        routers = made["virtual_ips"]
        assert isinstance(routers, dict)
        both = {**routers["api"], "sync_group": "api"}
        made["virtual_ips"] = {
            "api": {**both, "addresses": [f"{VIP}/24"]},
            "api6": {**both, "addresses": [f"{VIP6}/64"]},
        }
        made["api"] = {**made["api"], "workers": 1}  # type: ignore[dict-item]  # a section is a mapping
        return {**made, **self._changes[name]}

    def _taking_part(self) -> list[str]:
        return [name for name, node in self.nodes.items() if node.appliance.is_running()]

    def _others(self, name: str) -> list[str]:
        return [each for each in self._taking_part() if each != name]

    def _serves(self, name: str) -> bool:
        return all(self.nodes[name].kept(vip).get("active") for vip in VIPS)

    def _moved(self, before: str) -> str:
        def elsewhere() -> str:
            now = self._settled()
            return now if now != before else ""

        return wait_until(elsewhere, what=f"another one than {before} serves", timeout=_PATIENCE)

    def _settled(self, expected: str = "") -> str:
        """Return who serves both addresses where all have heard so, "" while it is not so."""
        said = {name: _Said(self.nodes[name].status()) for name in self._taking_part()}
        serving = {name for name, each in said.items() if each.active}
        if len(serving) != 1 or (expected and serving != {expected}):
            return ""
        (one,) = serving
        node = self.nodes[one].node
        places = {(VIP, node.address), (VIP6, node.link_local)}
        rest = [each for name, each in said.items() if name != one]
        return one if said[one].active == set(VIPS) and all(each.heard >= places for each in rest) else ""


class _Said:
    """What one node says: which addresses it serves, and who serves them as it has heard."""

    def __init__(self, status: Values) -> None:
        self.active = {str(each["address"]) for each in listed(status, "addresses") if each["active"]}
        self.heard = {
            (str(each["address"]), str(each["node"])) for each in listed(status, "others") if each["active"]
        }


@contextlib.contextmanager
def moving_nodes(count: int, *, forward: str = "proxy") -> Iterator[tuple[Node, MovingNodes]]:
    """Run so many nodes, and give a client and them; `forward` is who moves the bytes."""
    with Segment() as segment:
        client = segment.node("client")
        server = segment.node("server") if forward == "kernel" else None
        nodes = MovingNodes(segment, NAMES[:count], server=server)
        with nodes:
            yield client, nodes


@contextlib.contextmanager
def another_release() -> Iterator[Path]:
    """Give a directory with our package as another release: the same code, which says another version."""
    ours = Path(appliance.__file__).parent
    with tempfile.TemporaryDirectory(prefix="lb-release-") as directory:
        copied = Path(directory) / ours.name
        shutil.copytree(ours, copied, ignore=shutil.ignore_patterns("__pycache__"))
        if (beside := ours.parent / "config").exists():  # a checkout; an installed package has it within
            shutil.copytree(beside, Path(directory) / beside.name)
        first = copied / "__init__.py"
        first.write_text(first.read_text().replace(appliance.__version__, ANOTHER_RELEASE))
        yield Path(directory)


def _forwarded(node: Node, name: str, server: Node) -> dict[str, object]:
    """Start a node's server elsewhere, and return what has its kernel forward there."""
    let_forward(node)
    port = SERVER_PORT + NAMES.index(name)
    server.start([sys.executable, echoer.__file__, name, str(port)])
    hosts = zip(_FAMILIES, (server.address, f"[{server.address6}]"), strict=True)
    check = {"type": "tcp", "interval": "500ms"}
    frontend = {
        "bind": [f"{VIP}:{PORT}", f"[{VIP6}]:{PORT}"],
        "pool": "servers",
        "forward": "kernel",
    }
    return {
        "api": {"frontends": {"kube-api": frontend}},
        "pools": {
            "servers": {
                "check": check,
                "servers": {family: {"address": f"{host}:{port}"} for family, host in hosts},
            }
        },
    }
