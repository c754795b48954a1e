"""USR1, HAProxy's soft stop: nothing new is accepted, sessions end by themselves, and nothing is left."""

import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from support.network.ports import accepts
from support.peers.cluster import Cluster, cluster
from support.processes.waiting import wait_until

pytestmark = pytest.mark.programs

_DRAIN = 1.0  # seconds; a soft stop pays no heed to it


@contextmanager
def session(made: Cluster) -> Iterator[socket.socket]:
    """Open a session that a worker has taken."""
    with socket.create_connection(("127.0.0.1", made.port), timeout=10.0) as opened:
        wait_until(lambda: any(each.sessions for each in made.appliance.workers()), what="a session")
        yield opened


def soft_stop(made: Cluster) -> None:
    """Send USR1 to supervisord, and wait until nobody listens."""
    made.appliance.signal(signal.SIGUSR1)
    wait_until(lambda: not accepts(made.port), what="nobody listens any more")


def is_open(opened: socket.socket) -> bool:
    """Say whether the session waits for more."""
    opened.settimeout(0.1)
    try:
        return bool(opened.recv(1))
    except TimeoutError:
        return True
    except ConnectionError:  # a session that is cut is reset
        return False


@pytest.mark.promise("docs/operating.md", "USR1 waits for the last session")
def test_a_session_ends_by_itself():
    """It lives on beyond the drain time; when it has ended everything has, with exit status 0."""
    with cluster(workers=2, drain=_DRAIN) as made:
        with session(made) as opened:
            soft_stop(made)
            line = made.appliance.wait_for_event("stopping", lambda each: each.get("workers") == "drain")
            assert line["seconds"] is None
            with pytest.raises(AssertionError):
                wait_until(lambda: not is_open(opened), what="it is cut", timeout=3 * _DRAIN)
            assert made.appliance.workers()
        assert made.appliance.wait(patience=30.0) == 0
        assert made.appliance.processes() == []


@pytest.mark.slow("several starts of the whole appliance")
def test_without_sessions_it_ends_at_once():
    """Nothing is waited for."""
    with cluster(workers=1, drain=3600.0) as made:
        made.appliance.signal(signal.SIGUSR1)
        assert made.appliance.wait(patience=30.0) == 0
        assert made.appliance.processes() == []


@pytest.mark.slow("several starts of the whole appliance")
def test_term_after_it_is_the_ordinary_stop():
    """The drain time counts from TERM on, and then sessions are cut; a second USR1 changes nothing."""
    with cluster(workers=2, drain=_DRAIN) as made, session(made) as opened:
        soft_stop(made)
        made.appliance.signal(signal.SIGUSR1)
        assert is_open(opened)
        made.appliance.terminate()
        assert made.appliance.wait(patience=30.0) == 0
        assert not is_open(opened)
        assert made.appliance.processes() == []


@pytest.mark.slow("several starts of the whole appliance")
def test_it_reaches_workers_whose_master_dies():
    """Workers that lose their master in the middle of it keep their sessions all the same."""
    with cluster(workers=1, drain=_DRAIN) as made:
        with session(made) as opened:
            soft_stop(made)
            made.appliance.wait_for_event("stopping", lambda each: each.get("workers") == "drain")
            made.appliance.kill("proxy-api")
            with pytest.raises(AssertionError):
                wait_until(lambda: not is_open(opened), what="it is cut", timeout=3 * _DRAIN)
        assert made.appliance.wait(patience=30.0) == 0
        assert made.appliance.processes() == []
        made.appliance.remove_sockets()


@pytest.mark.slow("several starts of the whole appliance")
@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2])
def test_it_does_no_harm_to_the_programs_that_it_is_not_for(number: signal.Signals):
    """`systemctl kill` sends a signal to every process of the unit: sessions are not lost by that."""
    with cluster(workers=1, drain=_DRAIN) as made, session(made) as opened:
        before = {pid for pid in made.appliance.processes() if pid != made.appliance.pid}
        proxy = made.appliance.program_pid("proxy-api")
        for pid in before - ({proxy} if number is signal.SIGUSR1 else set()):
            made.appliance.signal(number, pid=pid)
        wait_until(lambda: made.appliance.command("status", check=False).returncode == 0, what="all is well")
        assert is_open(opened)
        assert {pid for pid in made.appliance.processes() if pid != made.appliance.pid} == before
