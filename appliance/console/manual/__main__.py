"""`python -m appliance.console.manual DIRECTORY`: writes the manual pages there, where man(1) finds them."""

from pathlib import Path

import click

from appliance.console.manual.pages import pages


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
def write(*, directory: Path) -> None:
    """Write the pages of the commands below DIRECTORY/man1, that of the configuration below man5."""
    for name, text in pages():
        page = directory / f"man{name.rpartition('.')[2]}" / name
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(text)


if __name__ == "__main__":
    write()
