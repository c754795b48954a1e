"""What is obeyed before there is a configuration."""

import pytest

from appliance.core.program_table import needed
from appliance.model.document.document import Document, read
from appliance.model.loading.awaiting import awaiting

pytestmark = pytest.mark.pure


def test_sockets_and_logs_are_as_the_yaml_says():
    """Whoever asks for a reload finds its socket; nothing else of the file is obeyed yet."""
    text = "log: { level: debug }\nreload: { sockets: [/run/other.sock] }\npools: { masters: {} }\n"

    found = awaiting(read(text), source="c.yaml", number=3)

    assert (found.awaited, found.number, found.log.level) == (True, 3, "debug")
    assert found.reload.sockets == ("/run/other.sock",)
    assert needed(found) == ()


@pytest.mark.parametrize("document", [None, read("log: { level: loud }\n")])
def test_with_errors_it_has_the_defaults(document: Document | None):
    """A file that cannot be read, or is wrong there, does not keep anything from waiting."""
    found = awaiting(document, source="c.yaml", number=1)

    assert (found.awaited, found.log.level, found.reload.sockets) == (True, "info", ())
