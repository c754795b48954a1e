"""`cd tests && python -m support.documents` renews what pages have of the code and of text: `make pages`."""

from support.documents import promises, supervisord_conf
from support.documents.generated import GENERATED
from support.documents.pages import DOCS
from support.documents.pictures import PICTURES, drawn


def main() -> None:
    """Write pictures, pages that are made of the code, the table of promises, and supervisord.conf."""
    for source in PICTURES.glob("*.txt"):
        source.with_suffix(".svg").write_text(drawn(source.read_text()))
    for name, made in GENERATED.items():
        (DOCS / f"{name}.md").write_text(made())
    supervisord_conf.CONF.write_text(supervisord_conf.renewed(supervisord_conf.CONF.read_text()))
    promises.CONTRIBUTING.write_text(promises.renewed(promises.CONTRIBUTING.read_text()))


main()
