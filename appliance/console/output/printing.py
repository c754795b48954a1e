"""The output of commands: JSON for machines, rich for people."""

from collections.abc import Sequence
from typing import Final

import click
import msgspec
from rich.console import Console, RenderableType
from rich.table import Table

_PIPE_WIDTH: Final = 200  # a pipe has no width, and folded lines of a table cannot be searched


def columns(*names: str) -> Table:
    """Return a table without rows; a column's name ends with > for numbers, with ... for prose."""
    table = Table(box=None, pad_edge=False)
    for name in names:
        prose = name.endswith("...")
        table.add_column(
            name.rstrip(">."),
            justify="right" if name.endswith(">") else "left",
            header_style="dim",
            no_wrap=not prose,
            overflow="fold" if prose else "ellipsis",
        )
    return table


def print_json(value: object) -> None:
    """Print a value of dataclasses, enums and plain types as indented JSON."""
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def print_rows(names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table of any length, one line per row; a column's name ends with > for numbers.

    For lists of sessions: rich lays out every cell separately, which takes seconds for thousands of rows.
    """
    heads = [name.rstrip(">") for name in names]
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    form = "  ".join(
        f"{{:{'>' if name.endswith('>') else '<'}{width}}}" for name, width in zip(names, widths, strict=True)
    )
    click.secho(form.format(*heads).rstrip(), dim=True)
    click.echo("".join(f"{form.format(*row).rstrip()}\n" for row in rows), nl=False)


def text_width() -> int:
    """Return the width of lines: that of the terminal, or 200 characters into a pipe."""
    console = Console()
    return console.width if console.is_terminal else _PIPE_WIDTH


def print_table(table: RenderableType) -> None:
    """Print tables in the width of the terminal; into a pipe without colours, 200 characters wide."""
    console = Console()
    (console if console.is_terminal else Console(width=_PIPE_WIDTH)).print(table)
