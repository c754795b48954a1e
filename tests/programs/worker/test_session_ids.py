"""The ids of sessions: those of this worker, and those that came with sessions of others."""

from contextlib import ExitStack

import pytest
from support.worker.lone_sessions import LoneSessions

from appliance.model.end_reasons import EndReason
from appliance.wire.lines.worker_arguments import WorkerArguments
from appliance.worker.session_ids import SessionIds

pytestmark = pytest.mark.programs


def test_ids_of_ended_sessions_are_forgotten():
    """However many sessions come and end, no more are kept than a few times those that live."""
    arguments = WorkerArguments(
        program="proxy-api",
        group="api",
        generation=7,
        index=1,
        workers=2,
        snapshot=1,
        listeners=(),
        ready_fd=-1,
    )
    ids = SessionIds(arguments)
    with ExitStack() as stack:
        sessions = LoneSessions(stack)
        _, living = sessions.session()
        ids.keep(living.number, "proxy-api-1-0-5")
        for number in range(100, 5100):
            ids.keep(number, f"proxy-api-1-0-{number}")
            ids.forget_ended(sessions.traffic.live)
        kept = [number for number in range(100, 5100) if ids.of(number) != f"proxy-api-7-1-{number}"]
        assert len(kept) <= 1100
        assert ids.of(living.number) == "proxy-api-1-0-5"
        assert ids.of(9) == "proxy-api-7-1-9"
        living.end(EndReason.KILLED)
        sessions.traffic.close()
