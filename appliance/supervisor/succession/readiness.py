"""Whether the programs of an appliance that takes over serve, by their own status.

That they run proves little: a proxy master that cannot start workers continues with those that it found.
"""

import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from appliance.model.paths import Paths
from appliance.model.program_names import PROXIES
from appliance.net.files.program_failures import ProgramFailure
from appliance.net.privileges.peer_credentials import listening_process
from appliance.wire.lines.control import Answer, ControlError, Question, decode_answer, encode_question
from appliance.wire.lines.line_buffer import LineBuffer

_PATIENCE: Final = 0.5  # seconds for an answer; a program without one is asked again
_CHUNK: Final = 65536


@dataclass(frozen=True, slots=True, kw_only=True)
class NotReady:
    """Why a program does not serve yet; `failed` if it has tried, and reports why it could not."""

    program: str
    reason: str
    failed: bool = False


def not_ready(paths: Paths, programs: Mapping[str, int]) -> Iterator[NotReady]:
    """Yield each of those programs, with these process ids, that does not serve yet."""
    for program, pid in programs.items():
        if listening_process(paths.control(program)) != pid:
            yield NotReady(program=program, reason="it does not answer yet")
        elif program in PROXIES:
            yield from _of_proxy(paths, program)


def _of_proxy(paths: Paths, program: str) -> Iterator[NotReady]:
    try:
        answer = _status(paths, program)
    except (OSError, ControlError) as error:
        yield NotReady(program=program, reason=str(error))
        return
    yield from _missing(program, answer)


def _missing(program: str, answer: Answer) -> Iterator[NotReady]:
    if failure := answer.values.get("failure"):
        yield NotReady(program=program, reason=_words(failure), failed=True)
    elif answer.values.get("snapshot") is None:
        yield NotReady(program=program, reason="its workers are not ready")


def _words(failure: object) -> str:
    try:
        return msgspec.convert(failure, ProgramFailure).reason
    except msgspec.ValidationError:
        return str(failure)


def _status(paths: Paths, program: str) -> Answer:
    lines = LineBuffer()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_PATIENCE)
        connection.connect(str(paths.control(program)))
        connection.sendall(encode_question(Question(command="status")))
        while chunk := connection.recv(_CHUNK):
            for line in lines.feed(chunk):
                return decode_answer(line)
    raise ControlError("no answer")
