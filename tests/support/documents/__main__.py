"""`cd tests && python -m support.documents` renews what docs/ has of the code and of text: `make pages`."""

from support.documents.generated import GENERATED
from support.documents.pages import DOCS
from support.documents.pictures import PICTURES, drawn


def main() -> None:
    """Write every picture and every page that is made of the code."""
    for source in PICTURES.glob("*.txt"):
        source.with_suffix(".svg").write_text(drawn(source.read_text()))
    for name, made in GENERATED.items():
        (DOCS / f"{name}.md").write_text(made())


main()
