"""Completion in real shells: what each of them makes of what is typed, with the names of a snapshot."""

import contextlib
import os
import pty
import re
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from appliance.console.command import main
from appliance.model.paths import Paths
from appliance.net.files import snapshots
from appliance.net.sources.judging import judge

pytestmark = pytest.mark.programs

_CONFIG = """\
api:
  frontends:
    kube-api: { bind: ["[::]:9445"], pool: masters }
    machine-config: { bind: ["[::]:22623"], pool: masters, allow: [10.0.0.0/8] }
pools:
  masters: { servers: { m-0: { address: "10.0.0.1:1" }, m-1: { address: "10.0.0.2:1" } } }
  routers: { servers: { infra: { address: "10.0.0.3:1" } } }
virtual_ips:
  api-vip: { addresses: [192.0.2.1/24], interface: eth0, router_id: 7 }
"""
_PATIENCE = 60.0


@pytest.fixture(scope="module")
def environment() -> Iterator[Mapping[str, str]]:
    """Give an environment with an accepted configuration, `appliance` on the PATH, and nobody's settings."""
    with tempfile.TemporaryDirectory(prefix="lb-") as directory:
        root = Path(directory)
        paths = Paths(config=root / "c.yaml", runtime=root / "run", state=root / "state")
        paths.runtime.mkdir()
        paths.config.write_text(_CONFIG)
        judged = judge(paths, number=1)
        assert judged.snapshot is not None, judged.errors
        snapshots.accept(paths, judged.snapshot)
        command = root / "bin" / "appliance"
        command.parent.mkdir()
        command.write_text(f'#!/bin/sh\nexec {sys.executable} -m appliance.console "$@"\n')
        command.chmod(0o755)
        yield {
            **{key: os.environ[key] for key in ("PYTHONPATH",) if key in os.environ},
            **paths.environment(),
            "PATH": f"{command.parent}:/usr/bin:/bin",
            "HOME": str(root),
            "TERM": "dumb",
            "LC_ALL": "C.UTF-8",
        }


def script(shell: str) -> str:
    """Return what `appliance completion` prints for a shell."""
    return CliRunner().invoke(main, ["completion", shell]).output


def in_fish(environment: Mapping[str, str], typed: str) -> set[str]:
    """Return what fish offers for a line, without explanations."""
    code = f"{script('fish')}\ncomplete -C '{typed}'"
    done = subprocess.run(
        ["fish", "--no-config", "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return {each.partition("\t")[0] for each in done.stdout.splitlines()}


def in_bash(environment: Mapping[str, str], typed: str) -> set[str]:
    """Return what bash offers: its function is called as readline calls it."""
    words = typed.split(" ")
    code = (
        f"{script('bash')}\nCOMP_WORDS=({' '.join(each or chr(39) * 2 for each in words)})\n"
        f"COMP_CWORD={len(words) - 1}\n"
        "compopt() { :; }\n"
        "complete -p appliance | grep -q -- '-F _appliance_completion' || exit 1\n"
        '_appliance_completion appliance; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return set(done.stdout.split("\n")) - {""}


class Terminal:
    """An interactive shell on a terminal of its own."""

    def __init__(self, command: list[str], environment: Mapping[str, str]) -> None:
        self._shown = ""
        self._master, terminal = pty.openpty()
        self._process = subprocess.Popen(
            command, env=environment, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True
        )
        os.close(terminal)

    def type(self, text: str, *, until: str) -> None:
        """Type something, and wait for what the shell then shows."""
        self._shown = ""
        os.write(self._master, text.encode())
        deadline = time.monotonic() + _PATIENCE
        while not re.search(until, self._shown, re.DOTALL):
            left = deadline - time.monotonic()
            assert left > 0, f"never shown: {until!r}, but {self._shown!r}"
            if select.select([self._master], [], [], left)[0]:
                self._shown += os.read(self._master, 4096).decode(errors="replace")

    def close(self) -> None:
        """End the shell."""
        self._process.kill()
        self._process.wait()
        os.close(self._master)


_OFFERS = [
    ("appliance drain ", {"masters/m-0", "masters/m-1", "routers/infra"}),
    ("appliance maint masters/", {"masters/m-0", "masters/m-1"}),
    ("appliance drain masters/m-0 r", {"routers/infra"}),
    ("appliance sessions --frontend ", {"kube-api", "machine-config"}),
    ("appliance sessions --server r", {"routers/infra"}),
    ("appliance --json vip move a", {"api-vip"}),
    ("appliance why k", {"kube-api"}),
    ("appliance why ", {"masters/m-0", "masters/m-1", "routers/infra", "masters", "routers"}
     | {"kube-api", "machine-config", "api-vip"}),
    ("appliance st", {"status"}),
    ("appliance completion ", {"bash", "zsh", "fish"}),
    ("appliance status --js", {"--json"}),
    ("appliance status --runtime-dir /nowhere --conf", {"--config"}),
    ("appliance drain --runtime-dir /nowhere ", set()),
    ("appliance vip status --runt", {"--runtime-dir"}),
    ("appliance --runt", {"--runtime-dir"}),
]  # fmt: skip


@pytest.mark.parametrize(("typed", "offered"), _OFFERS)
def test_bash(environment: Mapping[str, str], typed: str, offered: set[str]):
    """Commands, options before and behind them, and names of what runs."""
    assert in_bash(environment, typed) == offered


@pytest.mark.needs("fish")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        _OFFERS[0],
        *(pytest.param(*each, marks=pytest.mark.slow("the same word in fish")) for each in _OFFERS[1:]),
    ],
)
def test_fish(environment: Mapping[str, str], typed: str, offered: set[str]):
    """The same, asked as fish asks itself."""
    assert in_fish(environment, typed) == offered


_KEYS = [
    ("appliance drain rou\t", "routers/infra"),
    ("appliance vip move ap\t", "move api-vip"),
    ("appliance sessions --frontend mach\t", "machine-config"),
    ("appliance statu\t", "status"),
    ("appliance status --js\t", "--json"),
]


@pytest.mark.needs("zsh")
def test_zsh(environment: Mapping[str, str], tmp_path: Path):
    """A tab in an interactive zsh completes the word, by a file of fpath as packages install it."""
    functions = tmp_path / "functions"
    functions.mkdir()
    (functions / "_appliance").write_text(script("zsh"))
    ready = (
        f"unsetopt PROMPT_SP; PS1='READY'' '; fpath=({functions} $fpath);"
        f" autoload -U compinit; compinit -u -d {tmp_path}/dump\n"
    )
    with contextlib.closing(Terminal(["zsh", "-f", "-i"], environment)) as shell:
        shell.type(ready, until="READY ")
        for typed, shown in _KEYS:
            shell.type(typed, until=shown)
            shell.type("\x15echo CLE''AN\n", until="CLEAN.*READY ")


@pytest.mark.needs("/usr/share/bash-completion/bash_completion")
def test_bash_with_its_completions(environment: Mapping[str, str], tmp_path: Path):
    """A tab in an interactive bash loads the file that lies where packages install theirs."""
    place = tmp_path / "bash-completion" / "completions"
    place.mkdir(parents=True)
    (place / "appliance").write_text(script("bash"))
    settings = {**environment, "XDG_DATA_HOME": str(tmp_path), "BASH_COMPLETION_USER_DIR": str(place.parent)}
    ready = (
        "bind 'set enable-bracketed-paste off'; . /usr/share/bash-completion/bash_completion;"
        " PS1='READY'' '\n"
    )
    with contextlib.closing(Terminal(["bash", "--norc", "-i"], settings)) as shell:
        shell.type(ready, until="READY ")
        for typed, shown in _KEYS:
            shell.type(typed, until=shown)
            shell.type("\x15echo CLE''AN\n", until="CLEAN.*READY ")


def test_files_are_left_to_the_shell(environment: Mapping[str, str]):
    """Where a path is wanted the shell completes it."""
    asked = {
        **environment,
        "_APPLIANCE_COMPLETE": "bash_complete",
        "COMP_WORDS": "appliance --config ",
        "COMP_CWORD": "2",
    }
    done = subprocess.run(
        [sys.executable, "-m", "appliance.console"], env=asked, capture_output=True, text=True, check=True
    )
    assert done.stdout == "file,\n"


def test_other_shells_are_misuse():
    """The ones that are known are named."""
    done = CliRunner().invoke(main, ["completion", "csh"])
    assert done.exit_code == 2
    assert "'bash', 'zsh', 'fish'" in done.output
