"""HAProxy's letters for the end of a connection."""

import pytest

from appliance.core.balancing.termination_state import ConnectionStage, termination
from appliance.model.end_reasons import EndReason

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("reason", "stage", "letters"),
    [
        (EndReason.COMPLETED, ConnectionStage.DATA, "--"),
        (EndReason.CLIENT_ABORT, ConnectionStage.DATA, "CD"),
        (EndReason.CLIENT_ABORT, ConnectionStage.QUEUE, "CQ"),
        (EndReason.SERVER_ABORT, ConnectionStage.DATA, "SD"),
        (EndReason.CLIENT_TIMEOUT, ConnectionStage.DATA, "cD"),
        (EndReason.SERVER_FIN_TIMEOUT, ConnectionStage.DATA, "sD"),
        (EndReason.CONNECT_TIMEOUT, ConnectionStage.CONNECT, "sC"),
        (EndReason.CONNECT_REFUSED, ConnectionStage.CONNECT, "SC"),
        (EndReason.NO_SERVER, ConnectionStage.CONNECT, "SC"),
        (EndReason.QUEUE_FULL, ConnectionStage.CONNECT, "SQ"),
        (EndReason.QUEUE_TIMEOUT, ConnectionStage.QUEUE, "sQ"),
        (EndReason.NO_PORTS, ConnectionStage.CONNECT, "RC"),
        (EndReason.SERVER_DOWN, ConnectionStage.DATA, "DD"),
        (EndReason.SERVER_UP, ConnectionStage.DATA, "UD"),
        (EndReason.KILLED, ConnectionStage.DATA, "KD"),
        (EndReason.INTERNAL, ConnectionStage.DATA, "ID"),
    ],
)
def test_letters_say_who_and_when(reason: EndReason, stage: ConnectionStage, letters: str):
    """The first letter is the cause, the second the phase, as in HAProxy's log."""
    assert termination(reason, stage) == letters
