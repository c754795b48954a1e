"""The unit for systemd, as podman's own generator reads it (podman 4.4 or newer; Debian 12 has 4.3)."""

import os
import re
import shlex
import subprocess
from typing import Final

import pytest
from support.documents.pages import page
from support.machines import podman
from support.run import tools

_QUADLET: Final = os.environ.get("QUADLET") or tools.path("quadlet")

pytestmark = [
    pytest.mark.image,
    pytest.mark.skipif(
        not _QUADLET, reason="no quadlet: podman is older than 4.4; QUADLET= names one of a newer podman"
    ),
]


@pytest.fixture(scope="module")
def unit(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The service that the generator makes of our unit."""
    folder = tmp_path_factory.mktemp("units")
    (folder / "appliance.container").write_text((podman.ROOT / "image" / "appliance.container").read_text())
    done = subprocess.run(
        [str(_QUADLET), "-dryrun"],
        env={**os.environ, "QUADLET_UNIT_DIRS": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "unsupported key" not in done.stderr.lower()
    return done.stdout


def _setting(unit: str, key: str) -> str:
    (found,) = re.findall(rf"^{key}=(.*)$", unit, re.MULTILINE)
    return str(found)


def _options(words: list[str]) -> set[str]:
    """Return options with their values, in the form that is the same for every way to write them."""
    text = " ".join(words).replace("=", " ").replace("--volume", "-v").lower()
    found = {each.strip() for each in re.findall(r"--?[a-z-]+(?: [^ -][^ ]*)?", text)}
    given = {word for each in found if each.startswith("--cap-add") for word in each.split()[1].split(",")}
    return {each for each in found if not each.startswith("--cap-add")} | given


def test_starts_what_the_readme_starts(unit: str):
    """Systemd starts podman with every option of the command in docs/installing.md."""
    command = re.search(r"\$ podman run (.*?)\n\$", page("installing"), re.DOTALL)
    assert command
    *typed, _image = command[1].replace("\\\n", " ").split()
    assert _options(typed) - {"--detach"} <= _options(shlex.split(_setting(unit, "ExecStart")))


def test_reload_asks_the_appliance(unit: str):
    """`systemctl reload` is `appliance reload` in the container, whose exit status it gets."""
    name = re.search(r"--name (\S+)", _setting(unit, "ExecStart"))
    assert name
    assert _setting(unit, "ExecReload").endswith(f"podman exec {name[1]} appliance reload")


def test_systemd_waits_for_the_drain(unit: str):
    """Podman's grace ends before systemd's, which would kill podman itself."""
    grace = re.search(r"--stop-timeout[ =](\d+)", _setting(unit, "ExecStart"))
    assert grace
    assert int(_setting(unit, "TimeoutStopSec")) > int(grace[1])
