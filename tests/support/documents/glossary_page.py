"""The page that has our words beside those of HAProxy, keepalived and the RFCs: CONTRIBUTING's table."""

from typing import Final

from support.documents.pages import ROOT

_HEAD: Final = """# The words

*For users of HAProxy and keepalived, and readers of the log. To look things up.*

What these pages, the commands and the log call a thing, and what it is called elsewhere: connections have the
words of HAProxy, virtual IPs those of the RFCs. `-` means that there is no word for it. Made of the table of
[Contributing](../CONTRIBUTING.md#words) (`make pages`).

"""


def glossary_page() -> str:
    """Return the page, with the words in alphabetical order."""
    section = (ROOT / "CONTRIBUTING.md").read_text().partition("\n## Words\n")[2].partition("\n## ")[0]
    head, rule, *rows = [line for line in section.splitlines() if line.startswith("|")]
    return _HEAD + "\n".join([head, rule, *sorted(rows, key=str.lower), ""])
