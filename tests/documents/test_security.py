"""What docs/security.md says of capabilities, surfaces and the unit is what the code has."""

import re
from typing import Final

import pytest
from support.documents.pages import ROOT, page

from appliance.net.files.packaged import packaged
from appliance.net.privileges.capabilities import used_by
from appliance.net.process.python import command

pytestmark = pytest.mark.pure

PROGRAMS: Final = ROOT / "appliance" / "programs"

_PROGRAMS: Final = {
    "reload": "reload",
    "proxy-api, proxy-ingress": "proxy",
    "redirect": "redirect",
    "forward": "forward",
    "linger": "linger",
    "migrate": "migrate",
    "announce": "announce",
    "health": "health",
    "discover": "discover",
    "vrrp": "vrrp",
    "stats": "stats",
}
"""The module of each program in the table."""


def _table() -> dict[str, set[str]]:
    section = page("security").partition("## Who may do what")[2].partition("\n## ")[0]
    found: dict[str, set[str]] = {}
    for names, said in re.findall(r"^\| ([a-z, -]+) \| (.*) \|$", section, re.MULTILINE):
        capabilities = set(re.findall(r"`([A-Z_]+)`", said))
        found |= dict.fromkeys((names, *names.split(", ")), capabilities)
    return found


@pytest.mark.parametrize(("row", "module"), _PROGRAMS.items())
def test_capabilities_are_those_that_programs_have(row: str, module: str):
    """As an ordinary user: root's vrrp has two more, of which the text speaks."""
    used = used_by(command(f"appliance.programs.{module}"))
    assert _table()[row] == {each.name.removeprefix("CAP_") for each in used} - {"SETUID", "SETGID"}


def test_every_program_with_capabilities_is_in_the_table():
    """Whatever module is given any has a row."""
    modules = {path.stem for path in PROGRAMS.iterdir() if path.suffix == ".py" or path.is_dir()}
    given = {each for each in modules if used_by(command(f"appliance.programs.{each}"))}
    assert given - set(_PROGRAMS.values()) == set()


def test_every_surface_has_its_test():
    """Each row names a test file or a target of a fuzzer, and what it names is there."""
    section = page("security").partition("## Surfaces")[2].partition("\n## ")[0]
    rows = [line.split(" | ")[-1] for line in section.splitlines() if line.startswith("| ")][1:]
    fuzzers = "".join(each.read_text() for each in (ROOT / "tests" / "fuzz").glob("test_*.py"))
    assert len(rows) > 10
    for row in rows:
        files = [each.removeprefix("tests/") for each in re.findall(r"`([^`]+\.py)`", row)]
        targets = [
            each for found in re.findall(r"fuzz ((?:[a-z0-9-]+(?:, )?)+)", row) for each in found.split(", ")
        ]
        assert files or targets, row
        assert [each for each in files if not _test_file(each)] == []
        assert [each for each in targets if f'name="{each}"' not in fuzzers] == []


def _test_file(name: str) -> bool:
    return (ROOT / "tests" / name).exists() or (ROOT / "tests" / "fuzz" / name).exists()


@pytest.mark.parametrize(
    "line",
    [
        "NoNewPrivileges=yes",
        "ProtectSystem=strict",
        "PrivateDevices=yes",
        "ProtectKernelTunables=yes",
        "SystemCallFilter=@system-service",
        "RestrictNamespaces=yes",
        "MemoryDenyWriteExecute=yes",
    ],
)
def test_what_hardens_is_in_the_unit(line: str):
    """Each protection that the page speaks of is a line of the unit."""
    assert line in packaged("appliance.service").read_text()
