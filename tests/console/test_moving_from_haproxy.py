"""docs/moving-from-haproxy.md shows what is right; its commands: kernel/console/test_replaced_pair.py."""

import re
from pathlib import Path
from typing import Final

import pytest

from appliance.console.command import COMMANDS
from appliance.model.loading.loading import load

pytestmark = pytest.mark.pure

_ROOT: Final = Path(__file__).parents[2]
_DOCUMENT: Final = (_ROOT / "docs" / "moving-from-haproxy.md").read_text()


def test_its_configurations_are_right():
    """Each block of YAML is a configuration without errors and warnings."""
    blocks = re.findall(r"```yaml\n(.*?)```", _DOCUMENT, re.DOTALL)
    problems = [load(each, source="moving-from-haproxy.md", number=1).problems for each in blocks]

    assert (len(blocks), [each for each in problems if each]) == (1, [])


def test_its_commands_exist():
    """Every subcommand that it speaks of is one of ours."""
    named = set(re.findall(r"`(?:[^`\n]*\$ )?appliance ([a-z-]+)", _DOCUMENT)) - {"pod"}

    assert named - set(COMMANDS) == set()
    assert {"import", "status", "check"} <= named | set(
        re.findall(r"^lb-\d[$#] appliance (\w+)", _DOCUMENT, re.MULTILINE)
    )


def test_its_files_exist():
    """Every link leads to a file, every test and manifest that it names is there."""
    linked = [(_ROOT / "docs" / each).resolve() for each in re.findall(r"\]\(([^)#]+)", _DOCUMENT)]
    named = [_ROOT / each for each in re.findall(r"`(tests/[a-z_/]+\.py)`", _DOCUMENT)]
    manifests = [_ROOT / "image" / each for each in re.findall(r"`([a-z]+-pod\.yaml)`", _DOCUMENT)]

    assert [each for each in (*linked, *named, *manifests) if not each.exists()] == []
