"""`appliance top` over a real sshd: driven by keys, and gone with the connection."""

import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest
from support.network.ports import free_port
from support.peers.sshd import Sshd, sshd
from support.processes.processes import command_line, kill, parent, with_environment
from support.processes.terminal import InTerminal
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance

pytestmark = [pytest.mark.programs, pytest.mark.needs("ssh", "sshd")]

COMMAND = str(Path(sys.executable).parent / "appliance")


@pytest.fixture(scope="module")
def appliance() -> Iterator[Appliance]:
    """Run an appliance with one frontend and two servers."""
    servers = {name: {"address": f"127.0.0.1:{free_port()}"} for name in ("a", "b")}
    frontends = {"through": {"bind": [f"127.0.0.1:{free_port()}"], "pool": "one"}}
    config = {"api": {"workers": 1, "frontends": frontends}, "pools": {"one": {"servers": servers}}}
    with Appliance(config) as running:
        yield running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """Run a sshd."""
    with sshd(tmp_path_factory.mktemp("sshd")) as running:
        yield running


@contextmanager
def top(server: Sshd, appliance: Appliance, mark: str) -> Iterator[InTerminal]:
    """Run the command over there; each of its processes has `mark` in its environment."""
    settings = {**appliance.paths.environment(), "MARK": mark, "LC_ALL": "C.UTF-8"}
    words = ["env", *(f"{key}={value}" for key, value in settings.items())]
    remote = shlex.join([*words, COMMAND, "top", "--interval", "0.3"])
    with InTerminal(server.client(remote), environment=appliance.environment) as terminal:
        yield terminal


def marked(mark: str) -> list[int]:
    """Return the processes of one `top` over there."""
    return with_environment(f"MARK={mark}")


def test_it_is_driven_by_keys_and_ends(server: Sshd, appliance: Appliance):
    """Views, a filter and another size arrive; afterwards the terminal is as before, and nothing is left."""
    mark = uuid4().hex
    with top(server, appliance, mark) as terminal:
        terminal.wait_for("[3 servers]")
        assert marked(mark)
        terminal.press("2")
        terminal.wait_for("[2 pools]")
        terminal.press("enter")
        terminal.wait_for("[3 servers of one]")
        terminal.press("/", "b", "enter")
        terminal.wait_for("filter: b  q quit")
        terminal.press("escape", "escape")
        terminal.wait_for("[2 pools]")
        terminal.resize(100, 12)
        # Of a screen that becomes smaller the emulator keeps the last lines: only the upper are new.
        terminal.wait_for(lambda text: "[2 pools]" in text and "q quit" in text.splitlines()[11])
        terminal.press("q")
        assert terminal.wait() == 0
        assert terminal.modes_now() == terminal.modes
        assert terminal.shows_cursor
        assert "q quit" not in terminal.text
        wait_until(lambda: not marked(mark), what="nothing is left over there")


@pytest.mark.parametrize("side", ["client", "server"])
def test_a_connection_that_is_cut_leaves_nothing_behind(server: Sshd, appliance: Appliance, side: str):
    """Whichever side dies, without a word: `top` ends with the terminal that sshd gave it."""
    mark = uuid4().hex
    with top(server, appliance, mark) as terminal:
        terminal.wait_for("[3 servers]")
        assert marked(mark)
        if side == "client":
            terminal.signal(signal.SIGKILL)
        else:
            for each in sessions_of(marked(mark)):
                kill(each)
        wait_until(lambda: not marked(mark), what="nothing is left over there", timeout=60.0)
        assert terminal.wait() != 0
    assert appliance.status()["programs"]


def sessions_of(pids: list[int]) -> list[int]:
    """Return the processes of sshd that hold the terminals of these."""
    found: list[int] = []
    for pid in pids:
        above = parent(pid)
        while above > 1 and not command_line(above).startswith("sshd: "):
            above = parent(above)
        found += [above] if above > 1 else []
    return list(dict.fromkeys(found))
