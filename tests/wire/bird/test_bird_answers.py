"""Answers of BIRD 2.0.12, recorded, and damaged ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.wire.bird.bird_answers import (
    LONGEST,
    AnswerBuffer,
    BfdSession,
    BgpSession,
    BirdAnswer,
    BirdAnswerError,
    bfd_sessions,
    sessions,
)

pytestmark = pytest.mark.pure

# `~` shows the end of a line that ends with a space.
PROTOCOLS = b"""2002-Name       Proto      Table      State  Since         Info
1002-device1    Device     ---        up     19:41:33.912  ~
1006-
1002-bgp_tor_2d_a BGP        ---        up     19:41:33.912  Established   ~
1006-  BGP state:          Established
     Neighbor address: 127.0.0.2
     Neighbor AS:      64600
   Channel ipv4
     State:          UP
     Routes:         0 imported, 1 exported, 0 preferred
     Route change stats:     received   rejected   filtered    ignored   accepted
 ~
1002-bgp_b      BGP        ---        start  19:41:33.912  Active        Socket: Connection closed
1006-  BGP state:          Active
     Last error:       Socket: Connection closed
   Channel ipv4
     State:          DOWN
 ~
0000 ~
""".replace(b"~", b"")

BFD = b"""1020-bfd1:
 IP address                Interface  State      Since         Interval  Timeout
 127.0.0.2                 ---        Up         19:41:33.912    0.100    0.300
 127.0.0.3                 eth0       Down       19:41:33.912    1.000    0.000
0000 ~
""".replace(b"~", b"")


def whole(data: bytes) -> BirdAnswer:
    """Return the answer in these bytes."""
    answer = AnswerBuffer().feed(data)
    assert answer is not None
    return answer


def test_an_answer_in_pieces():
    """It is complete with the line after which no more follows, and not with any other whole line."""
    buffer = AnswerBuffer()
    for line in PROTOCOLS.splitlines(keepends=True)[:-1]:
        assert buffer.feed(line) is None
    assert buffer.feed(PROTOCOLS.splitlines(keepends=True)[-1]) == whole(PROTOCOLS)


def test_sessions():
    """A session that is up, and one that is not, with its error."""
    assert sessions(whole(PROTOCOLS)) == (
        BgpSession(protocol="bgp_tor_2d_a", state="Established", info="Established", exported=1),
        BgpSession(
            protocol="bgp_b",
            state="Active",
            info="Active Socket: Connection closed",
            error="Socket: Connection closed",
        ),
    )
    assert sessions(whole(b"0000 \n")) == ()
    assert sessions(whole(b"1002-x BGP\n1006-  Routes:  many exported\n0000 \n")) == (
        BgpSession(protocol="x"),
    )


def test_bfd():
    """The states by address; an interval that is no number counts as none."""
    assert bfd_sessions(whole(BFD.replace(b"1.000 ", b"?     "))) == {
        "127.0.0.2": BfdSession(state="Up", interval=0.1),
        "127.0.0.3": BfdSession(state="Down"),
    }


def test_errors():
    """An error is the text of its line; good answers have none."""
    answer = whole(b"0002-Reading configuration from /x\n8002 /x: No such file or directory\n")
    assert (answer.code, answer.error) == (8002, "/x: No such file or directory")
    assert whole(b"0003 Reconfigured\n").error == ""


@given(st.lists(st.integers(1, 200), max_size=20))
def test_any_division_into_segments(cuts: list[int]):
    """An answer is the same however its bytes arrive."""
    buffer, found, rest = AnswerBuffer(), [], PROTOCOLS
    for cut in (*cuts, len(PROTOCOLS)):
        part, rest = rest[:cut], rest[cut:]
        answer = buffer.feed(part) if part else None
        found += [answer] if answer else []
    assert found == [whole(PROTOCOLS)]


@pytest.mark.parametrize("data", [b"what\n", b" \n", b"12 x\n", b"x" * (LONGEST + 1)])
def test_no_answer(data: bytes):
    """What is no answer, or has no end, is an error."""
    with pytest.raises(BirdAnswerError):
        AnswerBuffer().feed(data)


@given(st.binary(max_size=300))
def test_any_bytes(data: bytes):
    """Any bytes are an answer, a part of one, or an error."""
    try:
        answer = AnswerBuffer().feed(data)
    except BirdAnswerError:
        return
    if answer is not None:
        sessions(answer)
        bfd_sessions(answer)
