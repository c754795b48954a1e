"""Command lines that pages show, and whether the appliance's own parser takes them."""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import click
from support.documents.pages import Block

from appliance.console.command import main

_PROMPT: Final = re.compile(r"^[\w-]*[$#] ((?:.*\\\n)*.*)$", re.MULTILINE)
_ENDS: Final = frozenset("&|;<>()")
_BEFORE: Final = re.compile(r"^(?:[A-Z_]+=.*|sudo|exec|--wait|podman|crictl|kubectl)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandLine:
    """A line that a page has an operator type, and the block that it is in."""

    block: Block
    text: str

    def __str__(self) -> str:
        return f"{self.block}: {self.text}"


def typed(block: Block) -> Iterator[CommandLine]:
    """Yield what a block of `console` has an operator type: what follows a prompt, and its continuations."""
    for text in _PROMPT.findall(block.text):
        yield CommandLine(block=block, text=text)


def ours(line: str) -> Iterator[list[str]]:
    """Yield the arguments of each `appliance` of a shell's line; ValueError where its quotes do not match."""
    words = shlex.shlex(line.replace("\\\n", " "), posix=True, punctuation_chars=True)
    words.whitespace_split = True
    found: list[list[str]] = [[]]
    for word in words:
        if set(word) <= _ENDS:
            found.append([])
        else:
            found[-1].append(word)
    for command in found:
        at = _ours_at(command)
        if at is not None:
            yield command[at + 1 :]


def _ours_at(command: Sequence[str]) -> int | None:
    """Return where `appliance` is the command; in `podman exec appliance appliance` it is the second one."""
    places = [at for at, word in enumerate(command) if word.rpartition("/")[2] == "appliance"]
    if not places:
        return None
    inside = command[0] in {"podman", "crictl", "kubectl"}
    at = places[-1] if inside and "exec" in command else places[0]
    if inside and "exec" not in command:
        return None
    return at if inside or all(_BEFORE.match(word) for word in command[:at]) else None


def complaint(arguments: Sequence[str]) -> str | None:
    """Return what the appliance's parser has against arguments, None where it takes them; nothing is run."""
    try:
        _parsed(main, "appliance", list(arguments), None)
    except click.exceptions.Exit:  # --help and --version end it at once
        return None
    except click.ClickException as error:
        return error.format_message()
    return None


def _parsed(command: click.Command, name: str, arguments: list[str], parent: click.Context | None) -> None:
    with command.make_context(name, arguments, parent=parent) as context:
        if not isinstance(command, click.Group):
            return
        left = [*context._protected_args, *context.args]
        if not left:
            return
        sub_name, sub, rest = command.resolve_command(context, left)
        if sub is None or sub_name is None:
            raise click.UsageError(f"no such command: {left[0]}")
        _parsed(sub, sub_name, rest, context)
