"""The socket for take-overs and upgrades, with peers that send whatever they like."""

import contextlib
import json
from pathlib import Path

import gevent
import pytest
from support.fuzzing.connections import conversation, nothing_left, unix
from support.fuzzing.fuzzing import Target, fuzz
from support.processes.waiting import wait_until
from support.supervisor.appliance import ask
from support.supervisor.lone_succession import LoneSuccession

from appliance.wire.lines.control import Question, encode_question
from appliance.wire.lines.succession import DONE, Party, request, wanted

pytestmark = pytest.mark.sockets

_ASKS = encode_question(request(Party(version="9.9.9", instance="7-a")))
_SEEDS = (
    _ASKS,
    _ASKS + encode_question(Question(command=DONE)),
    encode_question(wanted(("/opt/appliance/bin/appliance",))),
)
_WORDS = (b"\n", b'"form": 2', b'"words": ["/"]', b"[" * 300, b"\xff", b"null", b"x" * 70_000)


def test_succession_socket(tmp_path: Path, fuzz_seconds: float, fuzz_seed: int):
    """What is no question is refused, and a peer that has gone leaves the programs supervised."""

    def run(data: bytes) -> None:
        with LoneSuccession(tmp_path) as lone:
            conversation(unix(lone.paths.succession_socket), data)
            if lone.succession.relieved:
                return
            # It goes round in its own thread: it may be relieved, and its socket gone, while it is asked.
            with contextlib.suppress(OSError, ValueError):
                answer = ask(lone.paths.succession_socket, "none")
                assert "unknown command 'none'" in json.dumps(answer)
                assert not lone.standing_by
                return
            wait_until(lambda: lone.succession.relieved, what="who gives no answer is relieved")

    gevent.sleep(0)  # its hub has descriptors of its own, from the first use on
    with nothing_left():
        fuzz(
            Target(name="succession-socket", run=run, seeds=_SEEDS, words=_WORDS, longest=1 << 17),
            seconds=fuzz_seconds,
            seed=fuzz_seed,
        )
