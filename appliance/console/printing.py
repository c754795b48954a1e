"""What commands print: JSON for machines, rich for people."""

from typing import Final

import click
import msgspec
from rich.console import Console, RenderableType

_PIPE_WIDTH: Final = 200  # nobody wants a table folded because it goes to grep


def print_json(value: object) -> None:
    """Print a value of dataclasses, enums and plain types as JSON for a person's eye and a program's."""
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def print_table(table: RenderableType) -> None:
    """Print tables as wide as the terminal, plain and wide into a pipe."""
    console = Console()
    (console if console.is_terminal else Console(width=_PIPE_WIDTH)).print(table)
