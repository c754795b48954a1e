"""conntrackd's statistics, as conntrack-tools 1.4.7 prints them, and what is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.wire.conntrackd.conntrackd_control import (
    ConntrackdAnswerError,
    ConntrackdQuestion,
    ConntrackdStatistics,
    question,
    statistics,
)

pytestmark = pytest.mark.pure

ANSWER = b"""internal bypass:
connections new:\t\t           7
connections updated:\t\t           8
connections destroyed:\t\t           9

external inject:
connections created:\t\t         502\tfailed:\t           1
connections updated:\t\t        1000\tfailed:\t           2
connections destroyed:\t\t          40\tfailed:\t           3

traffic processed:
                   0 Bytes                         0 Pckts

UDP traffic (active device=eth0):
                 136 Bytes sent               126136 Bytes recv
                   4 Pckts sent                   92 Pckts recv
                   5 Error send                    6 Error recv

message tracking:
                   0 Malformed msgs                    7 Lost msgs

"""


def test_statistics_are_those_of_other_nodes():
    """What came from others, what the kernel refused of it, and what was lost on the way."""
    assert statistics(ANSWER) == ConntrackdStatistics(
        created=502,
        updated=1000,
        destroyed=40,
        failed=6,
        sent=136,
        received=126136,
        packets=92,
        errors=11,
        lost=7,
    )


def test_a_question_is_one_number():
    """Of the machine's own byte order."""
    assert int.from_bytes(question(ConntrackdQuestion.STATISTICS), "little") == 21


@pytest.mark.parametrize("cut", [0, 30, 200, 400, 640])
def test_a_part_is_no_answer(cut: int):
    """An answer that ends too early is refused."""
    with pytest.raises(ConntrackdAnswerError, match="no statistics"):
        statistics(ANSWER[:cut])


@given(st.binary(max_size=300))
def test_garbage_never_escapes(data: bytes):
    """Any bytes give statistics or the one error."""
    with pytest.raises(ConntrackdAnswerError):
        statistics(data)
