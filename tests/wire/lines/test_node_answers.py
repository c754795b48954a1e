"""What commands on other nodes print, also those of other releases, and of shells that talk."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.wire.lines import node_answers
from appliance.wire.lines.control import AnswerProblem
from appliance.wire.lines.node_answers import NodeAnswerError, NodeStatus, NodeVerdict, NodeVirtualIp

pytestmark = pytest.mark.pure

STATUS = {
    "ok": False,
    "problems": ["a"],
    "version": "1",
    "digest": "d",
    "programs": [],
    "virtual_ips": [{"name": "api", "state": "active", "active": True, "base": 150}],
}


def test_a_status_is_read():
    """Fields of no concern are passed over."""
    assert node_answers.status(json.dumps(STATUS, indent=2).encode()) == NodeStatus(
        ok=False,
        problems=("a",),
        version="1",
        digest="d",
        virtual_ips=(NodeVirtualIp(name="api", state="active", active=True),),
    )


def test_an_older_release_says_less():
    """What it does not know has a default."""
    assert node_answers.status(b'{"ok": true}') == NodeStatus(ok=True)


@pytest.mark.parametrize("before", [b"Welcome to lb-0\n", b"", b"a {b}\n\n"])
def test_a_shell_that_talks_is_passed_over(before: bytes):
    """The answer begins where a line begins with a brace."""
    assert node_answers.status(before + json.dumps(STATUS).encode()).version == "1"
    assert node_answers.values(before + b'[{"pool": "a"}]\n') == [{"pool": "a"}]


@pytest.mark.parametrize("output", [b"", b"Welcome\n", b"{", b'{"ok": 3}', b"[1]", b"[" * 100_000])
def test_anything_else_is_an_error(output: bytes):
    """It says what is wrong, in one line."""
    with pytest.raises(NodeAnswerError) as error:
        node_answers.status(output)
    assert "\n" not in str(error.value)


def test_a_verdict_is_read():
    """Errors have their places."""
    said = {"ok": False, "errors": [{"message": "m", "severity": "error", "line": 3}], "warnings": []}
    found = node_answers.verdict(json.dumps(said).encode())
    assert found == NodeVerdict(ok=False, errors=(AnswerProblem(message="m", line=3),))


def test_a_step_is_a_line():
    """A line that is not JSON is somebody else's; one that only begins so is an error."""
    assert node_answers.step(b'{"ok": true, "step": "checked", "runs": false}') == NodeVerdict(
        ok=True, step="checked", runs=False
    )
    assert node_answers.step(b"Welcome") is None
    with pytest.raises(NodeAnswerError):
        node_answers.step(b'{"ok"')


@given(st.binary(max_size=300))
def test_garbage_never_escapes(data: bytes):
    """Any bytes give an answer or NodeAnswerError."""
    for decode in (node_answers.status, node_answers.verdict, node_answers.step, node_answers.values):
        with suppress(NodeAnswerError):
            decode(data)
