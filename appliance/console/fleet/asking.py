"""Commands on all nodes of a fleet at once."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from appliance.console.fleet import nodes
from appliance.console.fleet.nodes import FleetNode
from appliance.console.fleet.remote import RemoteCommand, closed_at_the_end, wait, why
from appliance.console.fleet.transport import Transport
from appliance.console.output.refusal import Refused
from appliance.model.paths import Paths
from appliance.wire.lines.node_answers import LONGEST


def tell(command: RemoteCommand) -> None:
    """Say on standard error that a node has answered, or why it has not."""
    click.echo(f"{command.name}: {missing(command) or 'has answered'}", err=True)


def missing(command: RemoteCommand) -> str | None:
    """Return why a node has not answered, None if it has."""
    return why(command) if command.trouble or command.is_unreachable else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How nodes are asked, and how many seconds one step may take; `only` are the nodes, empty for all."""

    paths: Paths
    transport: Transport
    timeout: float
    only: tuple[str, ...] = ()

    def fleet(self, file: Path | None = None) -> "Fleet":
        """Return the nodes that a file names, by default the configuration; raises Refused, UsageError."""
        named = file or self.paths.config
        text = nodes.content(named)
        found = nodes.fleet_nodes(named, text)
        for each in self.only:
            if each not in [node.name for node in found]:
                names = ", ".join(node.name for node in found)
                raise click.UsageError(f"--node: {each!r} is none of `nodes`: {names}")
        chosen = tuple(each for each in found if not self.only or each.name in self.only)
        return Fleet(way=self, file=named, text=text, nodes=chosen)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """The nodes that a configuration names; `text` is the content of its file."""

    way: Way
    file: Path
    text: bytes
    nodes: tuple[FleetNode, ...]

    def begin(self, node: FleetNode, words: Sequence[str], *, longest: int = LONGEST) -> RemoteCommand:
        """Begin a command line on a node; raises Refused if this machine has no such command."""
        here = self.way.paths.environment() if node.here else {}
        try:
            return RemoteCommand(node.name, words, {**os.environ, **here}, here=node.here, longest=longest)
        except OSError as error:
            step = f"install `{words[0]}` on this machine; nothing was changed"
            raise Refused(f"{words[0]}: {error.strerror}", step=step) from error

    def ask(
        self,
        arguments: Sequence[str],
        *,
        given: bytes = b"",
        further: float = 0.0,
        progress: Callable[[RemoteCommand], None] = tell,
    ) -> tuple[RemoteCommand, ...]:
        """Run `appliance ARGUMENTS` on all nodes at once, and say on standard error who has answered.

        `given` is its standard input, `further` seconds are those that it takes longer than other steps.
        """
        line = self.way.transport.command
        commands = tuple(self.begin(each, line(each, arguments)) for each in self.nodes)
        with closed_at_the_end(commands):
            for each in commands:
                each.send(given, last=True)
            wait(commands, _has_ended, seconds=self.way.timeout + further, progress=progress)
        return commands


def _has_ended(command: RemoteCommand) -> bool:
    return not command.is_running
