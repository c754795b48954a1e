"""Commands to BIRD on its control socket; each has a deadline for its whole answer."""

import time
from pathlib import Path
from typing import Final

from gevent import socket

from appliance.net.privileges.peer_credentials import listening_process
from appliance.wire.bird.bird_answers import AnswerBuffer, BirdAnswer, BirdAnswerError

_PATIENCE: Final = 3.0  # seconds for an answer
_CHUNK: Final = 65536


class BirdUnavailable(Exception):  # noqa: N818  # a state of this machine, not a mistake
    """BIRD does not answer."""


def ask(path: Path, command: str) -> BirdAnswer:
    """Return BIRD's answer to one command; raises BirdUnavailable."""
    until = time.monotonic() + _PATIENCE
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(_PATIENCE)
            connection.connect(str(path))
            _answer(connection, until)  # its greeting
            connection.sendall(f"{command}\n".encode())
            return _answer(connection, until)
    except (OSError, BirdAnswerError) as error:
        raise BirdUnavailable(f"BIRD does not answer: {error}") from error


def process(path: Path) -> int:
    """Return the process id of the BIRD that listens, 0 if none does."""
    return listening_process(path) or 0


def _answer(connection: socket.socket, until: float) -> BirdAnswer:
    buffer = AnswerBuffer()
    while True:
        connection.settimeout(max(until - time.monotonic(), 0.001))
        data = connection.recv(_CHUNK)
        if not data:
            raise BirdAnswerError("the end of the connection")
        answer = buffer.feed(data)
        if answer is not None:
            return answer
