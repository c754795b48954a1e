"""What docs/security.md says of capabilities and of the unit is what the code has."""

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
