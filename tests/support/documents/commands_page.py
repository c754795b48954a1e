"""The page that has every command with its options, as `--help` shows them."""

from collections.abc import Iterator
from typing import Final

import click

from appliance.console.command import main

_HEAD: Final = """# Every command

*For operators who know what they look for. To look things up.*

The output of `--help` of each command (generated: `make pages`).
Exit codes: 0 success, 1 failure or refusal, 2 usage error.
"""
_WIDTH: Final = 100


def commands_page() -> str:
    """Return the page."""
    return "\n".join((_HEAD, *_parts(_root())))


def options() -> frozenset[str]:
    """Return every long option."""
    contexts = [*_contexts(_root())]
    every = (each.command.get_params(each) for each in contexts)
    return frozenset(
        word
        for params in every
        for each in params
        for word in (*each.opts, *each.secondary_opts)
        if word.startswith("--")
    )


def _root() -> click.Context:
    return click.Context(
        main, info_name="appliance", terminal_width=_WIDTH, max_content_width=_WIDTH, **main.context_settings
    )


def _contexts(context: click.Context) -> Iterator[click.Context]:
    """Yield a command's context, and those of its subcommands, as a command line would make them."""
    yield context
    command = context.command
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None, name
            yield from _contexts(click.Context(below, info_name=name, parent=context))


def _parts(root: click.Context) -> Iterator[str]:
    for context in _contexts(root):
        said = "\n".join(line.rstrip() for line in context.get_help().splitlines())
        yield f"## {context.command_path}\n\n```text\n{said}\n```\n"
