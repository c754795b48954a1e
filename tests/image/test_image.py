"""What is in the image, and what is not."""

import json
import re
import subprocess
import tarfile
from pathlib import Path

import pytest
from support.machines import podman

import appliance
from appliance.console.command import COMMANDS
from image.release import saved_image

_NEEDS = [pytest.mark.image, pytest.mark.needs("podman", "runc", "mmdebstrap", root=True)]
_UNIT = podman.ROOT / "image" / "appliance.container"
_README = podman.ROOT / "image" / "README.md"
_LEFT_OUT = "for each in gcc cc make pip pip3 git curl; do command -v $each; done; true"
_SET_UID = "find / -xdev -type f -perm /6000 2>/dev/null; true"
_LEFT_OVER = "find /var/lib/apt/lists /var/cache /var/log /tmp /root/.*history -type f 2>/dev/null; true"

pytestmark = _NEEDS


def _shell(script: str) -> list[str]:
    run = ("run", "--rm", "--network", "none", "--user", "0", "--entrypoint", "/bin/sh", podman.IMAGE)
    return podman.podman(*run, "-c", script).stdout.split()


def test_size(image: str):
    """The image is smaller than 200 MB."""
    del image
    assert podman.size() < 200e6


@pytest.mark.parametrize("script", [_LEFT_OUT, _SET_UID, _LEFT_OVER])
def test_left_out(image: str, script: str):
    """There is no compiler, package manager of Python, set-uid program, cache or history in it."""
    del image
    assert _shell(script) == []


def test_no_development_packages(image: str):
    """Only the packages of the runtime lock are installed, and the appliance."""
    del image
    locked = re.findall(
        r"^([a-z0-9.-]+)==", (podman.ROOT / "requirements-runtime.lock").read_text(), re.MULTILINE
    )
    listing = "import importlib.metadata as m; print(*(d.metadata['Name'] for d in m.distributions()))"
    found = {
        re.sub("[-_.]+", "-", name).lower() for name in _shell(f'/opt/appliance/bin/python -c "{listing}"')
    }
    assert found == {*locked, "lb-appliance"}


@pytest.mark.promise("container", "the image builds, and its command runs")
def test_version(image: str):
    """The command runs, also without any configuration."""
    del image
    run = ("run", "--rm", "--network", "none", podman.IMAGE, "--version")
    assert podman.podman(*run).stdout == f"appliance {appliance.__version__}\n"


def test_shells_and_man_find_their_files(image: str):
    """Completion for three shells, and a manual page for each command, at Debian's places."""
    del image
    places = {
        "/usr/share/bash-completion/completions/appliance": "complete -o nosort",
        "/usr/share/zsh/vendor-completions/_appliance": "#compdef appliance",
        "/usr/share/fish/vendor_completions.d/appliance.fish": "complete --no-files",
    }
    for place, said in places.items():
        assert said in " ".join(_shell(f"cat {place}"))
    pages = {Path(each).name for each in _shell("ls /usr/share/man/man1/appliance*")}
    assert pages == {"appliance.1.gz", *(f"appliance-{name}.1.gz" for name in COMMANDS)}
    assert "max_connections" in " ".join(_shell("zcat /usr/share/man/man5/appliance.yaml.5.gz"))
    assert "appliance\\-status" in " ".join(_shell("zcat /usr/share/man/man1/appliance-status.1.gz"))


def test_labels(image: str):
    """The labels are OCI's annotations."""
    del image
    names = ("title", "description", "licenses", "version", "base.name")
    assert {f"org.opencontainers.image.{name}" for name in names} <= podman.labels().keys()


def test_version_of_a_plain_build():
    """Who builds without the Makefile has the version in the labels too."""
    assert f'image.version="{appliance.__version__}"' in (podman.ROOT / "Containerfile").read_text()


@pytest.mark.promise("docs/releases.md", "the container image loads")
def test_the_archive_of_a_release_loads(image: str, tmp_path: Path):
    """By the command of its page; its id is that of its description, and it has the health check."""
    saved = tmp_path / "image.tar"
    podman.podman("save", "--quiet", "--format", "docker-archive", "--output", str(saved), image, timeout=300)
    packed = saved_image.write(saved)
    command = "gunzip -c FILE | podman load"
    assert command.replace("|", "\\|") in (podman.ROOT / "docs" / "releases.md").read_text()
    subprocess.run(
        ["sh", "-c", command.replace("FILE", str(packed))],
        env=podman.environment(), check=True, capture_output=True, timeout=300,
    )  # fmt: skip
    (found,) = json.loads(podman.podman("image", "inspect", image).stdout)
    with tarfile.open(packed) as opened:
        described = f"{found['Id']}.json"
        assert described in opened.getnames()
    assert found["Healthcheck"]["Test"] == ["CMD", "appliance", "alive"]
    assert _shell("appliance --version") == ["appliance", appliance.__version__]


_MODULES = "appliance.programs.worker, appliance.console.__main__"


def test_nothing_is_compiled_at_a_start(image: str):
    """Every module is there compiled, and its source need not have the time that it was compiled at."""
    del image
    imported = f"/opt/appliance/bin/python -v -c 'import {_MODULES}' 2>&1"
    said = _shell(f"{imported} | grep '^# code object from' | grep -v pyc || true")
    assert said == []


@pytest.mark.promise("data path", "the image has it compiled")
def test_the_data_path_is_compiled(image: str):
    """Extension modules move the connections, and their sources are left out."""
    del image
    said = "import appliance.worker.relay.raw_io as t; print(t.COMPILED, t.__file__)"
    compiled, file = _shell(f"/opt/appliance/bin/python -c '{said}'")
    assert compiled == "True"
    assert file.endswith(".so")
    assert _shell("find /opt/appliance -name '*.p[xy][dx]' -o -name '*.c'") == []


def _capabilities(words: list[str]) -> set[str]:
    given = [words[at + 1] for at, word in enumerate(words) if word == "--cap-add"]
    return {name for each in given for name in each.split(",")}


def test_readme_and_unit_agree():
    """The command of the README has the settings of the unit."""
    command = re.search(r"\$ podman run (.*?)\n\$", _README.read_text(), re.DOTALL)
    assert command
    words = command[1].replace("\\\n", " ").split()
    unit = podman.quadlet(_UNIT)
    assert _capabilities(words) == _capabilities(unit)
    for setting in ("--read-only", "no-new-privileges", "--stop-timeout", "130"):
        assert setting in words
        assert setting in unit
