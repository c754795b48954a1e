"""The network of `appliance demo --pair`: machines on one segment, each a network namespace with `eth0`.

Nothing of it is reachable from outside: the switch is a bridge in a namespace of its own. Without root, all
of it is in a user namespace (user_namespaces(7)) in which the user counts as root.
"""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from appliance.console.demo.demo_ports import DemoError

SWITCH: Final = "switch"
_UNSHARE: Final = ("unshare", "--user", "--map-root-user", "--mount", "--net")
_RUN: Final = 'mount -t tmpfs tmpfs /run && exec "$@"'
"""`ip netns` keeps its names below /run, which the user cannot write."""

_GIVEN: Final = "LB_DEMO_GIVEN"
"""Variable with the numbers of the descriptors that a demo in a user namespace is given."""


def become_root(command: Sequence[str], given: Sequence[int]) -> None:
    """Without root, become this command in a user namespace, with `given` descriptors; raises DemoError."""
    there = [*_UNSHARE, "sh", "-c", _RUN, "sh"]
    try:
        tried = subprocess.run([*there, "true"], check=False, capture_output=True, text=True)  # noqa: S603  # our own command
        refused = tried.stderr.strip() if tried.returncode else ""
    except OSError as error:
        refused = f"{there[0]}: {error.strerror}"
    if refused:
        raise DemoError(f"a pair needs root, or a user namespace, which this machine refuses: {refused}")
    for each in given:
        os.set_inheritable(each, True)  # noqa: FBT003  # its own signature
    os.execvpe(there[0], [*there, *command], {**os.environ, _GIVEN: " ".join(map(str, given))})  # noqa: S606  # our own command


def given_to_root() -> tuple[int, ...]:
    """Return the descriptors that this process was given by `become_root`, none if it is another one."""
    return tuple(map(int, os.environ.get(_GIVEN, "").split()))


def entered(pid: int) -> list[str]:
    """Return the words before a command of another terminal, which is to see what process `pid` sees."""
    words = ["nsenter", f"--target={pid}", "--user", "--preserve-credentials", "--mount"]
    return words if given_to_root() else []


class PairNetwork:
    """The machines by name; `prefix` begins the names of their namespaces."""

    def __init__(self, ip: str, prefix: str) -> None:
        self._ip = ip
        self._prefix = prefix

    def namespace(self, machine: str) -> str:
        """Return the name of a machine's namespace."""
        return f"{self._prefix}-{machine}"

    def inside(self, machine: str) -> list[str]:
        """Return the words before a command that is to run on a machine."""
        return [self._ip, "netns", "exec", self.namespace(machine)]

    def make(self, machines: Mapping[str, Sequence[str]]) -> None:
        """Make the switch, and the machines with their addresses; raises DemoError."""
        switch = self.namespace(SWITCH)
        self._run("netns", "add", switch)
        self._run("-n", switch, "link", "add", "bridge", "type", "bridge")
        self._run("-n", switch, "link", "set", "bridge", "up")
        for name, addresses in machines.items():
            there = self.namespace(name)
            self._run("netns", "add", there)
            self._run(
                "-n", switch, "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", there
            )
            self._run("-n", switch, "link", "set", name, "master", "bridge", "up")
            for interface in ("lo", "eth0"):
                self._run("-n", there, "link", "set", interface, "up")
            for each in addresses:
                self._run("-n", there, "address", "add", f"{each}/24", "dev", "eth0")

    def remove(self, machines: Sequence[str]) -> None:
        """Remove what is there of it; harmless when repeated."""
        for name in (*machines, SWITCH):
            command = [self._ip, "netns", "delete", self.namespace(name)]
            subprocess.run(command, check=False, capture_output=True)  # noqa: S603  # our own command

    def _run(self, *words: str) -> None:
        done = subprocess.run([self._ip, *words], check=False, capture_output=True, text=True)  # noqa: S603  # our own command
        if done.returncode:
            raise DemoError(
                f"cannot make the network of the demo: `ip {' '.join(words)}`: {done.stderr.strip()}"
            )


@contextlib.contextmanager
def pair_network(machines: Mapping[str, Sequence[str]]) -> Iterator[PairNetwork]:
    """Make the network, and remove it at the end; raises DemoError."""
    ip = shutil.which("ip")
    if ip is None:
        raise DemoError("a pair needs the command `ip` (iproute2)")
    network = PairNetwork(ip, f"lb-demo-{os.getpid()}")
    try:
        network.make(machines)
        yield network
    finally:
        network.remove(tuple(machines))
