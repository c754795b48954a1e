"""Every refusal of a command, and every error of a start, names the next step."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.documents.pages import ROOT

from appliance.console.command import COMMANDS, main

pytestmark = pytest.mark.pure

_CONSOLE = ROOT / "appliance" / "console"
_BOOT = ROOT / "appliance" / "reload" / "boot.py"


def _calls(path: Path) -> Iterator[ast.Call]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            yield node


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def test_no_command_ends_with_a_reason_alone():
    """Whoever cannot do what was asked raises `Refused`, or click's UsageError, which leads to --help."""
    plain = [
        str(path.relative_to(ROOT))
        for path in _CONSOLE.rglob("*.py")
        if any(_name(call) == "ClickException" for call in _calls(path))
    ]
    assert plain == []


def test_every_refusal_has_a_step():
    """A constant one is not empty, and so it is with the errors of a start."""
    found = [
        call
        for path in (*_CONSOLE.rglob("*.py"), _BOOT)
        for call in _calls(path)
        if _name(call) in {"Refused", "BootError"}
    ]
    assert len(found) >= 30
    for call in found:
        [step] = [each.value for each in call.keywords if each.arg == "step"]
        assert not isinstance(step, ast.Constant) or len(str(step.value)) > 10


_WITHOUT_AN_APPLIANCE = [
    tuple(each.split())
    for each in (
        *("status", "alive", "sessions", "sessions kill 1", "reload", "reload --dry-run", "why api"),
        *("drain p/s", "ready p/s", "maint p/s", "weight p/s 5"),
        *("vip status", "vip move api", "vip reclaim api", "guest show", "check", "import"),
    )
]


@pytest.mark.sockets
@pytest.mark.parametrize("words", _WITHOUT_AN_APPLIANCE, ids=" ".join)
def test_a_command_without_an_appliance(words: tuple[str, ...], tmp_path: Path):
    """What it says then leads on: to a command, or to --help."""
    config = tmp_path / "wrong.yaml"
    config.write_text("pools: 7\n")
    places = ["--config", str(config), "--runtime-dir", str(tmp_path / "run"), "--state-dir", str(tmp_path)]
    done = CliRunner().invoke(main, [*places, *words])
    assert done.exit_code in (1, 2), done.output
    said = done.output.lower()
    assert "next: " in said or "--help" in said, done.output
    assert words[0] in COMMANDS


def test_without_the_right_to_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Whom to ask is the step."""
    monkeypatch.setattr("os.access", lambda *_: False)
    done = CliRunner().invoke(main, ["--runtime-dir", str(tmp_path), "sessions"])
    assert done.exit_code == 1
    assert "Permission denied\nNext: ask as root or as its owner" in done.output
