"""`appliance top` in a real terminal, driven by keys, with a real appliance and real traffic."""

import json
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from support.peers.cluster import Cluster, cluster
from support.processes.terminal import InTerminal
from support.processes.waiting import wait_until

pytestmark = pytest.mark.programs

COMMAND = str(Path(sys.executable).parent / "appliance")


@pytest.fixture(scope="module")
def site() -> Iterator[Cluster]:
    """Run three masters and an appliance before them."""
    with cluster(masters=3, workers=1) as made:
        wait_until(lambda: made.appliance.status()["pools"][0]["up"] == 3, what="all are up")  # type: ignore[index]  # JSON
        yield made


@contextmanager
def top(site: Cluster, *arguments: str, **how: object) -> Iterator[InTerminal]:
    """Run the command in a terminal."""
    command = [COMMAND, "top", "--interval", "0.3", *arguments]
    with InTerminal(command, environment=site.appliance.environment, **how) as terminal:  # type: ignore[arg-type]  # how
        yield terminal


@contextmanager
def traffic(site: Cluster) -> Iterator[None]:
    """Have clients come, one after the other, until the end of the context."""
    over = threading.Event()

    def come() -> None:
        while not over.is_set():
            with socket.create_connection(("127.0.0.1", site.port), timeout=30) as client:
                client.sendall(b"who\n")
                while client.recv(1000):
                    pass

    clients = threading.Thread(target=come)
    clients.start()
    try:
        yield
    finally:
        over.set()
        clients.join()


def row(screen: str, name: str) -> list[str]:
    """Return the cells of the row with this name, none where it is not there."""
    return next((line.split() for line in screen.splitlines() if line.startswith(f"{name} ")), [])


def rate(screen: str, name: str) -> float:
    """Return the connections a second of the row with this name, 0.0 where there is no number yet."""
    with suppress(ValueError, IndexError):
        return float(row(screen, name)[3])
    return 0.0


def in_order(screen: str, *names: str) -> bool:
    """Return whether rows of all these names are there, one below the other."""
    places = [screen.find(name) for name in names]
    return min(places) >= 0 and places == sorted(places)


def test_rates_of_real_traffic(site: Cluster):
    """Clients are counted a second, in all and for each server, and none is left when they have gone."""
    with top(site) as terminal:
        with traffic(site):
            seen = terminal.wait_for(
                lambda text: (
                    re.search(r"new/s [1-9]", text)
                    and all(rate(text, f"masters/master-{n}") > 0 for n in range(3))
                )
            )
        assert "Serving." in seen
        assert "q quit" in seen.splitlines()[-1]
        assert max(map(len, seen.splitlines())) <= 80
        terminal.wait_for(lambda text: "new/s 0 " in text and "sessions 0 " in text)
        terminal.press("q")
        assert terminal.wait() == 0


def test_views_order_and_filter(site: Cluster):
    """Keys lead to each view, into a pool and back, and through orders and filters."""
    with top(site) as terminal:
        terminal.wait_for("[3 servers]")
        terminal.press("tab")
        terminal.wait_for(lambda text: "[4 checks]" in text and "L7OK/200" in text)
        terminal.press("1")
        terminal.wait_for(lambda text: "[1 frontends]" in text and row(text, "kube-api"))
        terminal.press("2")
        terminal.wait_for(lambda text: row(text, "masters")[1:3] == ["3", "3"])
        terminal.press("enter")
        terminal.wait_for("[3 servers of masters]")
        terminal.press(">", "r")
        terminal.wait_for(lambda text: in_order(text, "master-2", "master-1", "master-0"))
        terminal.press("/", "master-1")
        terminal.wait_for(lambda text: "filter: master-1" in text and "master-2" not in text)
        terminal.press("enter")
        terminal.wait_for("filter: master-1  q quit")
        terminal.press("enter")
        terminal.wait_for("masters/master-1 is up since")
        terminal.press("escape")
        terminal.wait_for("filter: master-1  q quit")
        terminal.press("escape")
        terminal.wait_for("[2 pools]")
        terminal.press("?")
        terminal.wait_for("sort by the next column")
        terminal.press("escape", "7")
        terminal.wait_for("[7 programs]")
        terminal.press("q")
        assert terminal.wait() == 0


def test_states_change_on_the_screen(site: Cluster):
    """What an operator does elsewhere is seen, and a pause keeps the screen as it was."""
    with top(site) as terminal:
        terminal.wait_for(lambda text: row(text, "masters/master-0")[1:2] == ["up"])
        site.appliance.command("maint", "masters/master-0")
        terminal.wait_for(lambda text: row(text, "masters/master-0")[1:2] == ["maint"])
        terminal.press("p")
        terminal.wait_for("PAUSED")
        site.appliance.command("ready", "masters/master-0")
        terminal.press("4", "3")
        assert row(terminal.wait_for("[3 servers]"), "masters/master-0")[1] == "maint"
        terminal.press("p")
        terminal.wait_for(lambda text: row(text, "masters/master-0")[1:2] == ["up"])


def test_programs_that_die_and_come_back(site: Cluster):
    """The screen goes on, shows it, and has its counters still."""
    with top(site, "--view", "programs") as terminal:
        terminal.wait_for(lambda text: row(text, "health")[1:2] == ["running"])
        before = site.appliance.program_pid("health")
        assert before is not None
        pid = site.appliance.kill("health")
        terminal.wait_for(lambda text: row(text, "health")[1:2] != ["running"] or str(pid) not in text)
        site.appliance.wait_for_restart("health", pid)
        site.appliance.kill("proxy-api")
        terminal.wait_for(
            lambda text: all(row(text, name)[1:2] == ["running"] for name in ("health", "proxy-api"))
        )
        terminal.press("q")
        assert terminal.wait() == 0


def test_another_size(site: Cluster):
    """A window that is made smaller and larger is filled each time."""
    with top(site) as terminal:
        terminal.wait_for("q quit")
        terminal.resize(50, 9)
        small = terminal.wait_for(
            lambda text: "q quit" in text.splitlines()[-1] and "serving" in text.lower()
        )
        assert len(small.splitlines()) == 9
        assert row(small, "masters/master-0")[1] == "up"
        terminal.resize(120, 30)
        terminal.wait_for(
            lambda text: "address" in text and "127.0.0.1:" in text and len(text.splitlines()) == 30
        )
        terminal.resize(10, 2)
        terminal.wait_for("too small")
        terminal.press("q")
        assert terminal.wait() == 0


@pytest.mark.slow("a whole appliance for each situation")
@pytest.mark.parametrize("way", ["q", "ctrl-c", "TERM"])
def test_the_terminal_is_given_back(site: Cluster, way: str):
    """However it is ended: the settings are as before, the cursor is back, and the exit code is 0."""
    with top(site) as terminal:
        terminal.wait_for("q quit")
        assert terminal.modes_now() != terminal.modes
        if way == "TERM":
            terminal.signal(signal.SIGTERM)
        else:
            terminal.press(way)
        assert terminal.wait() == 0
        assert terminal.modes_now() == terminal.modes
        assert terminal.shows_cursor
        assert "q quit" not in terminal.text
        assert "Traceback" not in terminal.raw.decode()


def test_in_the_background_and_back(site: Cluster):
    """Ctrl-Z gives the terminal to the shell, and fg draws the screen anew."""
    environment = {**site.appliance.environment, "PS1": "prompt> "}
    with InTerminal(["bash", "--norc", "--noprofile", "-i"], environment=environment) as terminal:
        terminal.wait_for("prompt>")
        terminal.press(f"{COMMAND} top --interval 0.3", "enter")
        terminal.wait_for("[3 servers]")
        terminal.press("\x1a")
        terminal.wait_for("Stopped")
        terminal.press("clear; echo hello$((1+1))", "enter")
        terminal.wait_for(lambda text: "hello2" in text and "[3 servers]" not in text)
        terminal.press("fg", "enter")
        terminal.wait_for(lambda text: "[3 servers]" in text and "hello2" not in text)
        terminal.press("2")
        terminal.wait_for("[2 pools]")
        terminal.press("q")
        terminal.wait_for("prompt>")
        terminal.press("exit 7", "enter")
        assert terminal.wait() == 7


@pytest.mark.parametrize("through", [[], ["env", "--ignore-signal=HUP"]])
def test_a_terminal_that_is_closed(site: Cluster, through: list[str]):
    """It ends with its terminal, also where SIGHUP was ignored at its start."""
    command = [*through, COMMAND, "top", "--interval", "0.3"]
    with InTerminal(command, environment=site.appliance.environment) as terminal:
        terminal.wait_for("q quit")
        terminal.close()
        assert terminal.wait() == 0


def test_an_input_that_ends(site: Cluster):
    """A terminal from which nothing can be read any more ends it, though no signal comes."""
    without_signal = ["env", "--ignore-signal=HUP", "setsid", "--wait"]
    command = [*without_signal, COMMAND, "top", "--interval", "0.3"]
    with InTerminal(command, environment=site.appliance.environment) as terminal:
        terminal.wait_for("q quit")
        terminal.close()
        assert terminal.wait() == 0


@pytest.mark.slow("a whole appliance for each situation")
@pytest.mark.parametrize("term", ["xterm-256color", "linux", "vt100", "screen"])
def test_kinds_of_terminals(site: Cluster, term: str):
    """Each shows the same; a vt100 gets no colours, and without UTF-8 there is nothing but ASCII."""
    with top(site, "--sort", "sessions", term=term, locale="C") as terminal:
        seen = terminal.wait_for(lambda text: all(f"masters/master-{n}" in text for n in range(3)))
        assert "sessv" in seen
        terminal.press("q")
        assert terminal.wait() == 0
        assert terminal.raw.isascii()
        assert (re.search(rb"\x1b\[[0-9;]*3[0-7]m", terminal.raw) is None) is (term == "vt100")


def test_signs_of_unicode(site: Cluster):
    """A terminal of UTF-8 gets an arrow."""
    with top(site, "--sort", "sessions") as terminal:
        terminal.wait_for("sess\u2193")


@pytest.mark.parametrize(
    ("term", "says"),
    [("dumb", "cannot move its cursor"), ("no-such-terminal", "does not know the terminal TERM=no-such")],
)
def test_terminals_without_a_screen(site: Cluster, term: str, says: str):
    """They are refused with a reason, and with what works there."""
    with top(site, term=term) as terminal:
        assert terminal.wait() == 2
        assert says in terminal.text.replace("\n", " ")
        assert "--once" in terminal.text


@pytest.mark.slow("a whole appliance for each situation")
def test_without_a_terminal(site: Cluster):
    """A pipe is told what to ask for; one look as text or JSON needs none."""
    refused = site.appliance.command("top", check=False)
    assert (refused.returncode, "appliance top --once" in refused.stderr) == (2, True)
    shown = site.appliance.command("top", "--once", "--interval", "0.2").stdout
    assert all(each in shown for each in ("Serving.", "kube-api", "masters/master-2", "proxy-api"))
    assert "q quit" not in shown
    one = site.appliance.command("top", "--once", "--view", "pools", "--interval", "0.2").stdout
    assert "masters" in one
    assert "proxy-api" not in one
    found = json.loads(
        site.appliance.command("top", "--json", "--interval", "0.2", "--filter", "master-1").stdout
    )
    assert [each["server"] for each in found["servers"]] == ["masters/master-1"]
    assert found["servers"][0]["new_per_second"] == 0.0
    assert found["seconds"] >= 0.2
    wrong = site.appliance.command("top", "--once", "--sort", "new", check=False)
    assert (wrong.returncode, "Did you mean" in wrong.stderr) == (2, True)


@pytest.mark.slow("a whole appliance for each situation")
def test_where_nothing_runs(tmp_path: Path):
    """It says so, and does not fail."""
    done = subprocess.run(
        [COMMAND, "top", "--once", "--interval", "0.2", "--runtime-dir", str(tmp_path / "none")],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "Not serving." in done.stdout
    assert "does not run" in done.stdout
