"""CONTRIBUTING does not lie: what it names is there, and every folder of the code has its line."""

import re
from pathlib import Path
from typing import Final

import pytest

pytestmark = pytest.mark.pure

ROOT: Final = Path(__file__).parents[2]
CODE: Final = ROOT / "appliance"
CONTRIBUTING: Final = (ROOT / "CONTRIBUTING.md").read_text()

_NAMED: Final = re.compile(r"`([A-Za-z_][\w.-]*(?:/[\w.-]+)*)`")
_LAYERS: Final = {each.name for each in CODE.iterdir() if (each / "__init__.py").exists()}
_FOLDERS: Final = {"appliance", "bench", "tests", *_LAYERS}


def _paths() -> set[str]:
    """Return what is named in backticks and looks like a file or folder of ours."""
    named = set(_NAMED.findall(CONTRIBUTING))
    return {each for each in named if "/" in each and each.partition("/")[0] in _FOLDERS}


def test_files_and_folders_exist():
    """Below the repository, or below `appliance` where the layer comes first."""
    paths = _paths()
    assert len(paths) > 40
    assert {each for each in paths if not ((ROOT / each).exists() or (CODE / each).exists())} == set()


def test_every_room_is_told():
    """A new room of a layer that all programs share gets its line in the table."""
    packages = {
        str(each.parent.relative_to(CODE))
        for layer in ("net", "core", "wire", "model")
        for each in (CODE / layer).glob("*/__init__.py")
    }
    named = {each.removeprefix("appliance/") for each in _paths()}
    assert packages - named == set(), "each new room gets a line in the table of CONTRIBUTING.md"
