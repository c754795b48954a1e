"""`cd tests && python -m support.documents` renews what docs/ has of the code and of text: `make pages`."""

from support.documents.pictures import PICTURES, drawn


def main() -> None:
    """Write every picture."""
    for source in PICTURES.glob("*.txt"):
        source.with_suffix(".svg").write_text(drawn(source.read_text()))


main()
