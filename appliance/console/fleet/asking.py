"""Commands on all nodes of a fleet at once."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from appliance.console.fleet.remote import RemoteCommand, closed_at_the_end, wait, why
from appliance.console.fleet.ssh_commands import FleetNode, Transport
from appliance.console.output.refusal import Refused
from appliance.model.config.values import names
from appliance.model.document.document import read
from appliance.model.document.tree import DocumentError
from appliance.model.loading.by_node import ByNode
from appliance.model.loading.loading import unreadable
from appliance.model.paths import Paths
from appliance.model.rules.node_rules import own_name
from appliance.net.files import config_file
from appliance.net.files.state_files import FileUnusable
from appliance.net.process.this_node import this_node
from appliance.wire.lines.node_answers import LONGEST

_CORRECT_IT: Final = "correct the file, which `appliance check` judges"
_NAME_THEM: Final = "name the configuration of the nodes with --config; its key `nodes` lists their names"


def content(file: Path) -> bytes:
    """Return a configuration; raises Refused."""
    try:
        return config_file.read(file)
    except FileUnusable as error:
        raise Refused(f"{file}: cannot be read: {error}", step=_NAME_THEM) from error


def fleet_nodes(file: Path, text: bytes) -> tuple[FleetNode, ...]:
    """Return the nodes that a configuration names; raises Refused if it names none, or cannot be read.

    Nothing else of it needs to be right: a broken configuration is when the nodes have to be looked at.
    """
    try:
        found = ByNode(read(text)).nodes
        for each in found:
            names.name(each)
    except DocumentError as error:
        problem = unreadable(error, source=str(file))
        raise Refused(f"{problem.where}: {problem.message}", step=_CORRECT_IT) from error
    except ValueError as error:
        raise Refused(f"{file}: nodes: {error}", step=_CORRECT_IT) from error
    if not found:
        raise Refused(f"{file}: it names no `nodes`", step=_NAME_THEM)
    own = own_name(found, this_node())
    return tuple(FleetNode(name=each, here=each == own) for each in found)


def report(command: RemoteCommand) -> None:
    """Report on standard error that a node has answered, or why it has not."""
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
        text = content(named)
        found = fleet_nodes(named, text)
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
        progress: Callable[[RemoteCommand], None] = report,
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
