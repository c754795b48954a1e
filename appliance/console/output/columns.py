"""A table of a terminal without rows, whose columns say by their names what they hold."""

from rich.table import Table


def columns(*names: str) -> Table:
    """Return a table without rows; a column's name ends with > where it holds numbers, with ... for prose."""
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
