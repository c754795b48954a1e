"""libyaml reads what PyYAML's own parser reads, and nothing else: the same values at the same places."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from appliance.model.document import yaml_reader
from appliance.model.document.tree import DocumentError, Node
from appliance.model.document.yaml_reader import read_yaml

pytestmark = pytest.mark.pure

_FILES = sorted((Path(__file__).parents[1] / "corpus").glob("*.yaml"))
_PIECES = st.sampled_from(
    ["a", "b1", ": ", ":", ",", "{", "}", "[", "]", "- ", "\n", "\n  ", "\n    ", " ", "'x'", '"y\\n"', "# c",
     "&n ", "*n", "|", ">-", "~", "1.5", "::", "?", "---", "...", "é", "\u2028", "<<", "!t", "%",
     "@", "`", "\\"]
)  # fmt: skip


def _plain(node: Node | None) -> object:
    """Return a value, with the places of all that is not empty: in `{a: }` libyaml places that further on."""
    if node is None or node.value is None or node.value == "":
        return node and node.value
    if isinstance(node.value, dict):
        found: object = {key: (each.place, _plain(each.node)) for key, each in node.value.items() if key}
    else:
        found = [_plain(each) for each in node.value] if isinstance(node.value, list) else node.value
    return node.place, found


def _by(monkeypatch: pytest.MonkeyPatch, loader: object, text: str) -> object:
    monkeypatch.setattr(yaml_reader, "_FAST", loader)
    try:
        return _plain(read_yaml(text))
    except DocumentError as error:
        return str(error)


def test_libyaml_is_there():
    """The locked PyYAML has it: else a large configuration takes five times as long."""
    assert issubclass(yaml_reader._FAST, yaml.CSafeLoader)


@pytest.mark.parametrize("file", _FILES, ids=lambda file: file.name)
def test_files_are_read_alike(monkeypatch: pytest.MonkeyPatch, file: Path):
    """Values, places, errors and their words."""
    text = file.read_bytes().decode(errors="replace")
    assert _by(monkeypatch, yaml.CSafeLoader, text) == _by(monkeypatch, yaml.SafeLoader, text)


@given(st.lists(_PIECES, max_size=30))
def test_any_text_is_read_alike(pieces: list[str]):
    """What both read; what only libyaml reads PyYAML refuses by its syntax."""
    text = "".join(pieces)
    with pytest.MonkeyPatch.context() as patch:
        fast, own = _by(patch, yaml.CSafeLoader, text), _by(patch, yaml.SafeLoader, text)
    assert fast == own or str(own).startswith("not YAML")
