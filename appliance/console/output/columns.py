"""An empty table for a terminal, whose column names determine the type of their content."""

from rich.table import Table


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
