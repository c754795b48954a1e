"""What commands print: JSON for machines, rich for people."""

from collections.abc import Sequence
from typing import Final

import click
import msgspec
from rich.console import Console, RenderableType

_PIPE_WIDTH: Final = 200  # nobody wants a table folded because it goes to grep


def print_json(value: object) -> None:
    """Print a value of dataclasses, enums and plain types as JSON for a person's eye and a program's."""
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def print_rows(names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table of any length, a line for each row; a column's name ends with > where it holds numbers.

    rich lays out each cell of its own, which takes seconds where there are thousands of rows.
    """
    heads = [name.rstrip(">") for name in names]
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    form = "  ".join(
        f"{{:{'>' if name.endswith('>') else '<'}{width}}}" for name, width in zip(names, widths, strict=True)
    )
    click.secho(form.format(*heads).rstrip(), dim=True)
    click.echo("".join(f"{form.format(*row).rstrip()}\n" for row in rows), nl=False)


def print_table(table: RenderableType) -> None:
    """Print tables as wide as the terminal, plain and wide into a pipe."""
    console = Console()
    (console if console.is_terminal else Console(width=_PIPE_WIDTH)).print(table)
