"""HAProxy's letters for the end of a connection."""

import pytest

from appliance.core.termination import Stage, termination
from appliance.wire.worker_board import Reason

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("reason", "stage", "letters"),
    [
        (Reason.COMPLETED, Stage.DATA, "--"),
        (Reason.CLIENT_ABORT, Stage.DATA, "CD"),
        (Reason.CLIENT_ABORT, Stage.QUEUE, "CQ"),
        (Reason.SERVER_ABORT, Stage.DATA, "SD"),
        (Reason.CLIENT_TIMEOUT, Stage.DATA, "cD"),
        (Reason.SERVER_FIN_TIMEOUT, Stage.DATA, "sD"),
        (Reason.CONNECT_TIMEOUT, Stage.CONNECT, "sC"),
        (Reason.CONNECT_REFUSED, Stage.CONNECT, "SC"),
        (Reason.NO_SERVER, Stage.CONNECT, "SC"),
        (Reason.QUEUE_FULL, Stage.CONNECT, "SQ"),
        (Reason.QUEUE_TIMEOUT, Stage.QUEUE, "sQ"),
        (Reason.NO_PORTS, Stage.CONNECT, "RC"),
        (Reason.SERVER_DOWN, Stage.DATA, "DD"),
        (Reason.KILLED, Stage.DATA, "KD"),
        (Reason.INTERNAL, Stage.DATA, "ID"),
    ],
)
def test_letters_say_who_and_when(reason: Reason, stage: Stage, letters: str):
    """The first letter is the cause, the second the phase, as in HAProxy's log."""
    assert termination(reason, stage) == letters
