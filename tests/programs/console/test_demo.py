"""The demo: what README promises of `make demo`, on other ports, without a terminal and with one."""

import contextlib
import json
import os
import pty
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from types import SimpleNamespace
from typing import Final, Self

import pytest
from support.network.ports import free_ports
from support.processes.processes import alive, with_environment
from support.processes.waiting import wait_until

from appliance.console.demo.demo import advice
from appliance.console.demo.demo_ports import DEMO_PORTS
from appliance.net.files.packaged import packaged

pytestmark = pytest.mark.programs

_COMMAND: Final = [sys.executable, "-m", "appliance.console", "demo"]
_CONTEXT: Final = ssl._create_unverified_context()  # noqa: S323  # as curl -k


def _free_offset() -> int:
    """Return an offset that makes all of the demo's ports free, and below the ephemeral ones."""
    ports = sorted({int(match) for match in DEMO_PORTS.findall(packaged("demo.yaml").read_text())})
    for candidate in free_ports(200):
        offset = candidate - ports[0]
        if offset > 0 and ports[-1] + offset < 32000 and all(_is_free(port + offset) for port in ports):
            return offset
    raise AssertionError("no free ports")


def _is_free(port: int) -> bool:
    with contextlib.suppress(OSError), socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("", port))
        return True
    return False


class Demo:
    """A demo whose output goes to a file; at the end it is killed if it still runs."""

    def __init__(self, directory: Path, *arguments: str) -> None:
        self.offset = _free_offset()
        self.output = directory / "demo.out"
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [*_COMMAND, "--port-offset", str(self.offset), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def __enter__(self) -> Self:
        wait_until(self.is_well, what="the demo says that all is well", timeout=60.0)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            sys.stderr.write(self.text())
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(60)

    @property
    def root(self) -> Path:
        """The demo's directory, as it prints it."""
        found = re.search(r"^  \. (.+)/env$", self.text(), re.MULTILINE)
        assert found, self.text()
        return Path(found[1])

    def is_well(self) -> bool:
        """Return whether everything runs and every server is up.

        All is well with a master that is still down: the checks begin before the masters listen.
        """
        assert self.process.poll() is None, self.text()
        states = dict(re.findall(r"^\S+ server (\S+): (\w+)", self.text(), re.MULTILINE))
        return "appliance: all is well" in self.text() and {"up"} == set(states.values())

    def text(self) -> str:
        """Return what it has printed."""
        return self.output.read_text()

    def processes(self) -> list[int]:
        """Return everything that runs with the demo's directories."""
        return with_environment(f"APPLIANCE_RUNTIME_DIR={self.root}/run")

    def shell(self, line: str) -> str:
        """Run a line in a second terminal that has read the demo's environment."""
        done = subprocess.run(
            ["bash", "-c", f". {self.root}/env && {line}"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, f"{line}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def configuration(self) -> int:
        """Return the number of the configuration that is obeyed."""
        return int(json.loads(self.shell("appliance status --json"))["configuration"])

    def get(self, port: int, path: str = "/readyz", *, tls: bool = True) -> str:
        """Return the body of an answer of status 200, on a connection of its own."""
        number = port + self.offset
        connection = (
            HTTPSConnection("127.0.0.1", number, timeout=20, context=_CONTEXT)
            if tls
            else HTTPConnection("127.0.0.1", number, timeout=20)
        )
        with contextlib.closing(connection):
            connection.request("GET", path)
            answer = connection.getresponse()
            body = answer.read().decode()
        assert answer.status == 200, f"{answer.status} {body}"
        return body.strip()


class Clients:
    """Threads that ask the API without pause; `failures` are what went wrong."""

    def __init__(self, demo: Demo, count: int = 2) -> None:
        self._demo = demo
        self._stop = threading.Event()
        self.failures: list[str] = []
        self.answers: list[str] = []
        self._threads = [threading.Thread(target=self._ask) for _ in range(count)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def wait_for_answers(self, more: int) -> None:
        """Return when that many further answers have come."""
        wanted = len(self.answers) + more
        wait_until(lambda: len(self.answers) >= wanted or self.failures, what="answers come", timeout=30)

    def _ask(self) -> None:
        while not self._stop.wait(0.005):
            try:
                self.answers.append(self._demo.get(9445))
            except (OSError, HTTPException, AssertionError) as error:
                self.failures.append(repr(error))


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """Give a demo that all tests of this module share; the last one ends it."""
    with Demo(tmp_path_factory.mktemp("demo")) as running:
        yield running


@pytest.mark.promise("docs/getting-started.md", "the demo serves")
def test_masters_answer_in_turn(demo: Demo):
    """Three requests in a row are answered by three masters, and three more by the same in that order."""
    answers = [demo.get(9445) for _ in range(6)]
    assert {"ok master-0", "ok master-1", "ok master-2"} == set(answers[:3])
    assert answers[:3] == answers[3:]


@pytest.mark.promise("program", "proxy-ingress")
def test_ingress_answers(demo: Demo):
    """Both ingress ports reach a router, and one client always the same."""
    clear = {demo.get(8080, "/", tls=False) for _ in range(4)}
    secure = {demo.get(8443, "/") for _ in range(4)}
    assert 1 == len(clear) == len(secure)
    assert clear | secure <= {"hello from router-0", "hello from router-1"}


def test_endpoints_answer(demo: Demo):
    """The endpoints that OpenShift's probes ask are there."""
    demo.get(9444, "/haproxy_ready", tls=False)
    demo.get(9454, "/haproxy_monitor", tls=False)


def test_the_page_is_where_the_demo_says(demo: Demo):
    """Its address is printed, for the operator's browser."""
    found = re.search(r"http://localhost:([0-9]+)(/haproxy_stats)", demo.text())
    assert found, demo.text()
    assert "Serving" in demo.get(int(found[1]) - demo.offset, found[2], tls=False)


def test_advice_is_true(demo: Demo):
    """The printed commands work in a shell that has read the environment file."""
    status = json.loads(demo.shell("appliance status --json"))
    assert status["ok"], status["problems"]
    assert "master-1" in demo.shell("supervisorctl status master-1")
    assert "Unchanged" in demo.shell("appliance reload")


@pytest.mark.slow("the same way as above")
def test_master_stops_without_a_failed_request(demo: Demo):
    """A master that is stopped and started again through supervisorctl costs no request."""
    with Clients(demo) as clients:
        clients.wait_for_answers(20)
        demo.shell("supervisorctl stop master-1")
        clients.wait_for_answers(50)
        assert "ok master-1" not in clients.answers[-30:]
        demo.shell("supervisorctl start master-1")
        wait_until(lambda: "ok master-1" in clients.answers[-10:], what="master-1 answers again", timeout=30)
    assert clients.failures == []


@pytest.mark.slow("a whole appliance for each situation")
def test_proxy_restarts_without_a_failed_request(demo: Demo):
    """`supervisorctl restart proxy-api` costs no request."""
    with Clients(demo) as clients:
        clients.wait_for_answers(20)
        demo.shell("supervisorctl restart proxy-api")
        clients.wait_for_answers(100)
    assert clients.failures == []


@pytest.mark.slow("a whole appliance for each situation")
def test_reload_brings_a_new_generation_without_a_failed_request(demo: Demo):
    """A changed frontend is served by a new generation, and no request fails."""
    with Clients(demo) as clients:
        clients.wait_for_answers(20)
        before = demo.configuration()
        # The change may be seen by `reload: { watch }` before the command comes.
        demo.shell("sed -i 's/workers: 1 /workers: 2 /' $APPLIANCE_CONFIG && appliance reload")
        assert demo.configuration() == before + 1
        clients.wait_for_answers(50)
    assert clients.failures == []


@pytest.mark.slow("a whole appliance for each situation")
def test_watch_outlives_a_reload(demo: Demo):
    """A long answer goes on after the generation that carries it was replaced."""
    connection = HTTPSConnection("127.0.0.1", 9445 + demo.offset, timeout=20, context=_CONTEXT)
    with contextlib.closing(connection):
        connection.request("GET", "/watch")
        answer = connection.getresponse()
        first = answer.readline()
        before = demo.configuration()
        demo.shell(
            "sed -i 's/respond: \\/haproxy_ready/respond: \\/ready/' $APPLIANCE_CONFIG && appliance reload"
        )
        assert demo.configuration() == before + 1
        wait_until(
            lambda: all(
                each["phase"] != "draining"
                for each in json.loads(demo.shell("appliance status --json"))["generations"]
            ),
            what="the old workers are gone, long before their drain time is over",
        )
        assert b" event " in answer.readline()
        assert b" event " in first


@pytest.mark.slow("a whole appliance for each situation")
def test_changes_are_printed(demo: Demo):
    """Without a terminal there is one line for each change."""
    demo.shell("appliance maint masters/master-2")
    wait_until(
        lambda: "server masters/master-2: maint" in demo.text(), what="the change is printed", timeout=60
    )
    demo.shell("appliance ready masters/master-2")


@pytest.mark.slow("a whole appliance for each situation")
@pytest.mark.promise("docs/getting-started.md", "the demo leaves nothing")
def test_interrupt_leaves_nothing(demo: Demo):
    """Ctrl-C ends every process, removes every file, and is no failure. Runs last: it ends the demo."""
    root, started = demo.root, demo.processes()
    assert started
    demo.process.send_signal(signal.SIGINT)
    assert demo.process.wait(60) == 0
    assert not root.exists()
    assert with_environment(f"APPLIANCE_RUNTIME_DIR={root}/run") == []
    assert [pid for pid in started if alive(pid)] == []


@pytest.mark.slow("a whole appliance for each situation")
def test_kill_takes_the_appliance_along(tmp_path: Path):
    """A demo that is killed leaves no process behind."""
    with Demo(tmp_path) as demo:
        root, started = demo.root, demo.processes()
        demo.process.kill()
        wait_until(lambda: not any(map(alive, started)), what="every process has ended", timeout=60)
    subprocess.run(["rm", "-r", root], check=True)


@pytest.mark.slow("a whole appliance for each situation")
def test_supervisord_killed_leaves_nothing(tmp_path: Path):
    """Where supervisord itself is killed, the demo says so, and takes everything down."""
    with Demo(tmp_path) as demo:
        root, started = demo.root, demo.processes()
        os.kill(int((root / "run" / "supervisord.pid").read_text()), signal.SIGKILL)
        assert demo.process.wait(60) == 1
        assert "The appliance has ended" in demo.text()
    assert not root.exists()
    assert [pid for pid in started if alive(pid)] == []


@pytest.mark.slow("a whole appliance for each situation")
def test_second_interrupt_ends_it_at_once(tmp_path: Path):
    """A second Ctrl-C does not wait for a session that drains, and still leaves nothing."""
    with Demo(tmp_path) as demo:
        root, started = demo.root, demo.processes()
        with socket.create_connection(("127.0.0.1", 9445 + demo.offset)):
            demo.process.send_signal(signal.SIGINT)
            wait_until(lambda: "Stopping" in demo.text(), what="it has begun to stop", timeout=60)
            demo.process.send_signal(signal.SIGINT)
            demo.process.wait(60)
    assert not root.exists()
    assert [pid for pid in started if alive(pid)] == []


def test_taken_ports_are_named():
    """A port that another program has is named, with a way out, and nothing is left."""
    offset = _free_offset()
    with socket.create_server(("127.0.0.1", 9445 + offset)):
        done = subprocess.run(
            [*_COMMAND, "--port-offset", str(offset)], capture_output=True, text=True, timeout=60, check=False
        )
    assert done.returncode == 1
    assert f"already: {9445 + offset}." in done.stderr
    assert "--port-offset" in done.stderr


@pytest.mark.slow("a whole appliance for each situation")
def test_terminal_shows_a_table():
    """On a terminal the demo draws tables, and Ctrl-C there ends it."""
    main, terminal = pty.openpty()
    process = subprocess.Popen(
        [*_COMMAND, "--port-offset", str(_free_offset())],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "150", "LINES": "60"},
        start_new_session=True,
    )
    os.close(terminal)
    os.set_blocking(main, False)
    seen = bytearray()

    def shows(text: bytes) -> bool:
        with contextlib.suppress(OSError):
            seen.extend(os.read(main, 1 << 20))
        return text in seen or process.poll() is not None

    try:
        wait_until(lambda: shows(b"L7OK"), what="a check in the tables", timeout=60)
        process.send_signal(signal.SIGINT)
        wait_until(lambda: shows(b"\0") and process.poll() is not None, what="the end", timeout=60)
        assert process.returncode == 0, seen.decode(errors="replace")
        assert b"masters/master-0" in seen
    finally:
        process.terminate()
        process.wait(60)
        os.close(main)


def test_at_80_by_24_the_advice_stays():
    """In a terminal of the usual size the first line that one needs is on the screen with the live view."""
    site = SimpleNamespace(
        port=lambda port: port + 1000,
        environment_file=Path("/tmp/lb-demo-k2v9x1q0/env"),  # noqa: S108  # the length of a real one
        log=Path("/tmp/lb-demo-k2v9x1q0/log"),  # noqa: S108  # the same
    )
    said = advice(site).splitlines()
    assert max(map(len, said)) <= 80
    assert len(said) + len(["", "title", "counts", "cursor"]) <= 24
