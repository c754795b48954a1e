"""The command line that runs `appliance` on a node: here, by OpenSSH's client, or in its container.

The configuration of OpenSSH's client has all that concerns the way: `Host lb-0` its address, user, keys, jump
hosts, known hosts.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from appliance.console.fleet.nodes import FleetNode
from appliance.net.process import python

VIA: Final[Mapping[str, tuple[str, ...]]] = {
    "podman": ("podman", "exec", "--interactive", "appliance", "appliance"),
    "sudo": ("sudo", "-n", "appliance"),
}
"""The command `appliance` of a node whose appliance runs in a container, or whose user is not root."""

_OPTIONS: Final = (
    "BatchMode=yes",
    "ConnectTimeout=10",
    "ServerAliveInterval=5",
    "ServerAliveCountMax=3",
)
"""No password is asked for, and a lost connection is noticed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transport:
    """How nodes are reached: options of ssh_config(5) that win over our own, and `via` of VIA."""

    options: tuple[str, ...] = ()
    via: str | None = None

    def command(self, node: FleetNode, arguments: Sequence[str]) -> list[str]:
        """Return the command line that runs `appliance ARGUMENTS` on a node."""
        return self._there(node, [*self._appliance(node), *arguments])

    def sequence(self, node: FleetNode, commands: Sequence[Sequence[str]], *, counts: int) -> list[str]:
        """Return the command line that runs several there, one after another, whatever each returns.

        Output and exit status are those of the one with the index `counts`. They continue if the connection
        is lost.
        """
        lines = [shlex.join([*self._appliance(node), *each]) for each in commands]
        lines = [each if at == counts else f"{each} >/dev/null 2>&1" for at, each in enumerate(lines)]
        lines.insert(counts + 1, "status=$?")
        return self._there(node, ["sh", "-c", "; ".join([*lines, "exit $status"])])

    def _there(self, node: FleetNode, words: Sequence[str]) -> list[str]:
        if node.here:
            return list(words)
        options = [word for each in (*self.options, *_OPTIONS) for word in ("-o", each)]
        return ["ssh", "-T", *options, "--", node.name, shlex.join(words)]

    def _appliance(self, node: FleetNode) -> Sequence[str]:
        if self.via:
            return VIA[self.via]
        return python.own_command() if node.here else ("appliance",)
