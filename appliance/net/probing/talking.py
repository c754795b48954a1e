"""Has a check's conversation with a server over a stream: what `wire.checks` decides is sent and received."""

from typing import Final

from appliance.model.check_results import CheckResult
from appliance.net.probing.answer import Judgement
from appliance.net.probing.peer import FloodError, Stream
from appliance.wire.checks.conversation import Conversation, Hear, Missed, Passed, Say

_PASSED: Final[Judgement] = (CheckResult.L7OK, 0, "")


def talk(stream: Stream, conversation: Conversation) -> Judgement:
    """Return what the conversation comes to; raises FloodError and OSError."""
    while True:
        match conversation.move():
            case Say(data):
                stream.send(data)
            case Hear():
                conversation.feed(_received(stream, conversation))
            case Passed():
                return _PASSED
            case Missed(reason):
                return CheckResult.L7RSP, 0, reason


def _received(stream: Stream, conversation: Conversation) -> bytes:
    """Return the next bytes; an error behind an answer is its end, as in HAProxy: often it is a reset."""
    try:
        return stream.receive()
    except (OSError, FloodError):
        if conversation.heard:
            return b""
        raise
