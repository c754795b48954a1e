"""The end of the appliance: TERM drains, a second TERM does not wait, and nothing is left."""

import pytest
from support.load.load import Load
from support.network.ports import accepts
from support.peers.cluster import Cluster, cluster
from support.processes.waiting import wait_until

pytestmark = pytest.mark.programs

_SESSIONS = 40


@pytest.mark.promise("docs/operating.md", "TERM drains")
def test_term_lets_sessions_finish_until_the_drain_deadline():
    """Nothing new is accepted, every session lives to the deadline, and then everything has ended."""
    drain = 4.0
    with cluster(workers=2, drain=drain) as made, Load(port=made.port, sessions=_SESSIONS) as load:
        load.wait_for_sessions()
        made.appliance.terminate()
        wait_until(lambda: not accepts(made.port), what="nobody listens any more")
        assert len(load.report().living) == _SESSIONS
        assert made.appliance.stop(patience=30.0) == 0
        sessions = load.report().ended
        assert len(sessions) == _SESSIONS
        assert max(each.ended for each in sessions) - min(each.ended for each in sessions) < drain
        assert made.appliance.processes() == []


@pytest.mark.slow("several starts of the whole appliance")
def test_term_without_sessions_does_not_wait_for_the_deadline():
    """A drain time of an hour is no reason to wait when there is nothing to drain."""
    with cluster(workers=1, drain=3600.0) as made:
        assert made.appliance.stop(patience=30.0) == 0


@pytest.mark.slow("several starts of the whole appliance")
def test_a_second_term_ends_everything_at_once():
    """Sessions are cut, and no process is left."""
    with cluster(workers=2, drain=3600.0) as made, Load(port=made.port, sessions=_SESSIONS) as load:
        load.wait_for_sessions()
        made.appliance.terminate()
        _wait_for_stopping(made)
        # One that follows within a moment may be the same request, sent to the process and to its group.
        wait_until(
            lambda: made.appliance.terminate() or not made.appliance.is_running(),
            what="it has ended",
            pause=0.3,
        )
        wait_until(lambda: made.appliance.processes() == [], what="no process is left")
        made.appliance.remove_sockets()
        wait_until(lambda: len(load.report().ended) == _SESSIONS, what="every session is cut")


def _wait_for_stopping(made: Cluster) -> None:
    wait_until(
        lambda: made.appliance.workers() and not made.appliance.accepting(), what="the workers are draining"
    )
