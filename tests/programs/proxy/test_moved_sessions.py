"""A reload that brings new workers ends no connection: open sessions move to them.

`E2E_FULL=1` makes 1,000 reloads (or `E2E_RELOADS` of them) with 10,000 sessions, of which half are streams
that write a piece each second in both directions.
"""

import contextlib
import os
import signal
import socket
from collections import Counter
from pathlib import Path

import pytest
from support.load.load import Load
from support.peers.backend import Backend
from support.processes.processes import descriptors, resident
from support.processes.waiting import Late, wait_until
from support.proxy.moving_site import Site, site

pytestmark = [pytest.mark.programs, pytest.mark.data_path]

_FULL = os.environ.get("E2E_FULL") == "1"
_SESSIONS = 5000 if _FULL else 100
_STREAMS = 5000 if _FULL else 10
_PERIOD = 1.0 if _FULL else 0.0
_RATE = 300.0 if _FULL else 100.0
_RELOADS = int(os.environ.get("E2E_RELOADS") or (1000 if _FULL else 8))
_WORKERS = 2 if _FULL else 1
"""The fewest: a process that may open 20,000 files holds 9,700 sessions."""

_AT_ONCE = 500
_WARM_UP = 4  # reloads after which the programs have what they make once; even, like all of them
_GROWTH = 8 << 20
_UNDER_WAY = 200  # descriptors of new connections, and of pipes
_MIB = 1 << 20


def _listed(made: Site) -> dict[str, dict[str, object]]:
    """Return what `appliance sessions` lists of the lines' frontend, by id."""
    return {str(each["id"]): each for each in made.listed("--frontend", "kube-api")}


@pytest.mark.promise("docs/reloading.md", "open connections move to the new workers")
def test_nothing_ends_and_no_byte_is_lost():
    """Sessions that talk now and then, streams that never pause, and new connections, over many reloads."""
    with site(workers=_WORKERS) as made, Load(port=made.port) as load:
        _open(made, load)
        for number in range(1, _RELOADS + 1):
            made.reload(made.config(workers=_WORKERS + number % 2))
            made.wait_for_one_generation()
            if number == _WARM_UP:
                wait_until(lambda: _reads_all_events(made), what="all events are read")
                before = _held(made)
        with contextlib.suppress(Late):
            wait_until(lambda: not _grown(before, _held(made)), what="the programs hold what they held")
        assert _grown(before, _held(made)) == {}
        made.streams.wait_until_all_flow()
        report = load.report()
        assert report.failures == {}
        assert report.ended == []
        assert len(report.living) == _SESSIONS
        told = made.streams.report()
        assert (told.open, told.ended) == (_STREAMS, {})
        assert not made.appliance.events("sessions-lost")
        assert not made.appliance.events("internal-error")
        assert not made.appliance.events("worker-refused")


def _open(made: Site, load: Load) -> None:
    """Open the sessions and streams, some at a time, and begin with new connections."""
    for opened in range(0, _SESSIONS, _AT_ONCE):
        number = min(_AT_ONCE, _SESSIONS - opened)
        load.open_sessions(number)
        load.wait_for_sessions(opened + number)
    for opened in range(0, _STREAMS, _AT_ONCE):
        made.streams.connect(made.streams_port, min(_AT_ONCE, _STREAMS - opened), period=_PERIOD)
    load.set_rate(_RATE)


def _reads_all_events(made: Site) -> bool:
    """Return whether `reload` has all boards of events open, its own twice: it opens each at a look.

    The board of supervisord is made after a second, with its report that the programs run.
    """
    opened = Counter[str]()
    for each in Path(f"/proc/{made.appliance.program_pid('reload')}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            opened[str(each.readlink())] += 1
    paths = made.appliance.paths
    boards = {paths.event_board("supervisor"), *paths.runtime.glob("*.events")}
    return all(opened[str(each)] >= (2 if each.stem == "reload" else 1) for each in boards)


def _grown(before: dict[str, tuple[int, int]], after: dict[str, tuple[int, int]]) -> dict[str, object]:
    """Return what holds more than before, by program: what it held, and what it holds."""
    return {
        name: ((files, memory), after[name])
        for name, (files, memory) in before.items()
        if after[name][0] > files + (_UNDER_WAY if name == "workers" else 0)
        or after[name][1] > memory + _GROWTH
    }


def _held(made: Site) -> dict[str, tuple[int, int]]:
    """Return how many descriptors, and how many bytes, the programs hold, and all workers together.

    The fewest of several looks: a question that is being answered has a descriptor of its own.
    """
    pids = {"supervisord": made.appliance.pid}
    for program in ("reload", "health", "proxy-api"):
        pids[program] = made.appliance.program_pid(program) or 0
    looks = [{name: (descriptors(pid), resident(pid)) for name, pid in pids.items()} for _ in range(20)]
    workers = [each.pid for each in made.appliance.workers()]
    return {name: min(look[name] for look in looks) for name in pids} | {
        "workers": (sum(map(descriptors, workers)), sum(map(resident, workers)))
    }


@pytest.mark.slow("generations of real workers under load")
def test_the_id_that_an_operator_saw_stays_valid():
    """`sessions` lists a session that has moved by its id, with its age and bytes, and `kill` finds it."""
    with site() as made, Load(port=made.port, sessions=3) as load:
        load.wait_for_sessions()
        before = _listed(made)
        assert len(before) == 3
        for workers in (2, 1):
            made.reload(made.config(workers=workers))
            made.wait_for_one_generation()
        after = _listed(made)
        assert after.keys() == before.keys()
        for name, each in after.items():
            assert each["client"] == before[name]["client"]
            assert each["server"] == "masters/master-0"
            assert each["age"] >= before[name]["age"]
            assert each["bytes_in"] >= before[name]["bytes_in"]
        name = min(after)
        made.appliance.command("sessions", "kill", name)
        wait_until(lambda: len(load.report().ended) == 1, what="one has ended")
        assert _listed(made).keys() == before.keys() - {name}


@pytest.mark.slow("generations of real workers under load")
def test_what_has_no_place_in_the_new_generation_stays_and_drains():
    """A frontend that is gone: its sessions go on where they are, and the others move."""
    with site() as made, Load(port=made.port, sessions=5) as load:
        load.wait_for_sessions()
        made.streams.connect(made.streams_port, 2)
        config = made.config(workers=1)
        group = config["api"]
        assert isinstance(group, dict)
        del group["frontends"]["streams"]
        made.reload(config)
        wait_until(
            lambda: sorted(each.sessions for each in made.appliance.workers()) == [2, 5],
            what="what has a place has moved",
        )
        made.streams.wait_for_more(_MIB)
        assert made.streams.report().ended == {}
        assert load.report().ended == []


@pytest.mark.slow("generations of real workers under load")
def test_a_server_that_is_gone_keeps_its_sessions():
    """They are counted at it in the new generation, until the last one has ended."""
    with site() as made, Backend("master-1") as other, Load(port=made.port, sessions=4) as load:
        load.wait_for_sessions()
        config = made.config(workers=2)
        pools = config["pools"]
        assert isinstance(pools, dict)
        pools["masters"]["servers"] = {"master-1": {"address": f"127.0.0.1:{other.port}"}}
        made.reload(config)
        made.wait_for_one_generation()
        assert {each["server"] for each in _listed(made).values()} == {"masters/master-0"}
        lines = load.report().lines
        wait_until(lambda: load.report().lines > lines + 4, what="all go on")
        assert load.report().ended == []


@pytest.mark.slow("generations of real workers under load")
def test_a_worker_that_hangs_and_dies_with_an_offer_loses_nothing():
    """What it was offered and did not take goes on in the old worker, and moves to its sibling later."""
    with site() as made, Load(port=made.port, sessions=200) as load:
        load.wait_for_sessions()
        old = made.appliance.workers()[0].pid
        with contextlib.ExitStack() as stack:
            _stop(stack, old)  # it gets the order to drain, and obeys when we say
            made.appliance.write(made.config(workers=2))
            connection = stack.enter_context(made.appliance.reload_connection())
            connection.sendall(b"reload\n")
            made.appliance.wait_for_event(
                "generation-accepting", lambda event: event["generation"] == 2, timeout=60.0
            )
            new = made.appliance.workers(generation=2)[0].pid
            _stop(stack, new)
            os.kill(old, signal.SIGCONT)
            made.appliance.wait_for_event("sessions-not-moved", timeout=60.0)
            os.kill(new, signal.SIGKILL)
        made.wait_for_one_generation()
        lines = load.report().lines
        wait_until(lambda: load.report().lines > lines + 200, what="all go on")
        assert load.report().ended == []
        assert not made.appliance.events("sessions-lost")


def _stop(stack: contextlib.ExitStack, pid: int) -> None:
    """Stop a process where it stands; at the end it goes on, if it lives."""

    def go_on() -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)

    stack.callback(go_on)
    os.kill(pid, signal.SIGSTOP)


@pytest.mark.slow("generations of real workers under load")
def test_drain_leaves_them_where_they_are():
    """`sessions: drain`: they stay in the old generation."""
    with site() as made, Load(port=made.port, sessions=5) as load:
        made.sessions = "drain"
        assert made.appliance.reload(made.config(workers=1))["ok"] is True
        load.wait_for_sessions()
        made.reload(made.config(workers=2))
        lines = load.report().lines
        wait_until(lambda: load.report().lines > lines + 5, what="they go on")
        assert sorted(each.sessions for each in made.appliance.workers()) == [0, 0, 5]


@pytest.mark.slow("generations of real workers under load")
def test_half_closed_and_unread_ones_move_too():
    """A client that has sent its FIN gets the rest of its answer from the new worker."""
    with site() as made, socket.create_server(("127.0.0.1", 0)) as origin:
        config = made.config(workers=1)
        pools = config["pools"]
        assert isinstance(pools, dict)
        pools["masters"]["servers"] = {"own": {"address": f"127.0.0.1:{origin.getsockname()[1]}"}}
        pools["masters"]["check"] = False
        # A half-closed session that is silent ends after a second by default.
        config["defaults"] = {"timeouts": {"client_fin": "1h", "server_fin": "1h"}}
        assert made.appliance.reload(config)["ok"] is True
        with socket.create_connection(("127.0.0.1", made.port), timeout=30) as client:
            client.sendall(b"question")
            client.shutdown(socket.SHUT_WR)
            server, _ = origin.accept()
            with server:
                server.settimeout(30)
                assert server.recv(100) == b"question"
                assert server.recv(100) == b""
                group = config["api"]
                assert isinstance(group, dict)
                group["workers"] = 2
                made.reload(config)
                made.wait_for_one_generation()
                server.sendall(b"answer")
                server.shutdown(socket.SHUT_WR)
                assert client.recv(100) == b"answer"
                assert client.recv(100) == b""
