"""`cd tests && python -m support.documents` renews what pages have of the code and of text: `make pages`."""

from support.documents import promises
from support.documents.generated import GENERATED
from support.documents.pages import DOCS
from support.documents.pictures import PICTURES, drawn


def main() -> None:
    """Write every picture, every page that is made of the code, and the table of promises."""
    for source in PICTURES.glob("*.txt"):
        source.with_suffix(".svg").write_text(drawn(source.read_text()))
    for name, made in GENERATED.items():
        (DOCS / f"{name}.md").write_text(made())
    promises.CONTRIBUTING.write_text(promises.renewed(promises.CONTRIBUTING.read_text()))


main()
