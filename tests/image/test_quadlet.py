"""The units for systemd, as podman's own generator reads them (podman 4.4 or newer; Debian 12 has 4.3)."""

import os
import re
import shlex
import subprocess
from pathlib import Path
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
def units(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The services that the generator makes of our units, by their names."""
    folder = tmp_path_factory.mktemp("units")
    for each in (podman.ROOT / "image").glob("*.container"):
        (folder / each.name).write_text(each.read_text())
    done = subprocess.run(
        [str(_QUADLET), "-dryrun"],
        env={**os.environ, "QUADLET_UNIT_DIRS": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "unsupported key" not in done.stderr.lower()
    _, *parts = re.split(r"^---(.*)---$", done.stdout, flags=re.MULTILINE)
    return {Path(name).name: text for name, text in zip(parts[::2], parts[1::2], strict=True)}


@pytest.fixture(scope="module")
def unit(units: dict[str, str]) -> str:
    """The service of the one container."""
    return units["appliance.service"]


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


_SHOWN = (podman.ROOT / "image" / "README.md").read_text()


@pytest.mark.parametrize(
    ("name", "told"),
    [("appliance-pids.service", "appliance-pids"), ("appliance@.service", "appliance-0.1.0")],
)
def test_starts_what_an_upgrade_is_shown_with(units: dict[str, str], name: str, told: str):
    """Systemd starts podman with every option of what image/README.md shows; the release is its instance."""
    command = re.search(rf"\$ podman run (--detach --name {told} .*?)\n\$", _SHOWN, re.DOTALL)
    assert command
    typed, _, _ = command[1].replace("\\\n", " ").replace("0.1.0", "%i").partition(" lb-appliance")
    started = _setting(units[name], "ExecStart").replace("localhost/", "").replace("%%i", "%i")
    assert _options(typed.split()) - {"--detach"} <= _options(shlex.split(started))


def test_an_upgrade_waits_for_the_take_over(units: dict[str, str]):
    """Ready is said within; what could not take over does not start again; process ids stay to the end."""
    unit = units["appliance@.service"]
    assert _setting(unit, "Type") == "notify"
    assert "--sdnotify=container" in _setting(unit, "ExecStart")
    assert (_setting(unit, "Restart"), _setting(unit, "RestartPreventExitStatus")) == ("on-failure", "3")
    assert "Requires=appliance-pids.service" in unit
    assert re.search(r"^After=.*appliance-pids.service", unit, re.MULTILINE)


def test_reload_asks_the_appliance(unit: str):
    """`systemctl reload` is `appliance reload` in the container, whose exit status it gets."""
    name = re.search(r"--name[= ](\S+)", _setting(unit, "ExecStart"))
    assert name
    assert _setting(unit, "ExecReload").endswith(f"podman exec {name[1]} appliance reload")


def test_systemd_waits_for_the_drain(unit: str):
    """Podman's grace ends before systemd's, which would kill podman itself."""
    grace = re.search(r"--stop-timeout[ =](\d+)", _setting(unit, "ExecStart"))
    assert grace
    assert int(_setting(unit, "TimeoutStopSec")) > int(grace[1])
