"""`python -m appliance.console.manual DIRECTORY`: writes the manual pages there, for man(1) to find."""

from pathlib import Path

import click

from appliance.console.manual.pages import pages


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
def write(*, directory: Path) -> None:
    """Write a page for the command and each of its subcommands below DIRECTORY/man1."""
    folder = directory / "man1"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages():
        (folder / name).write_text(text)


if __name__ == "__main__":
    write()
