"""The client of `appliance upgrade`: the running supervisord starts a release, and reports the outcome."""

import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from appliance.wire.lines.control import Answer, ControlError, decode_answer, encode_question
from appliance.wire.lines.line_buffer import LineBuffer
from appliance.wire.lines.succession import wanted

_CHUNK: Final = 65536
_LIMIT: Final = 65536  # bytes of the answer


class NobodyToUpgrade(Exception):  # noqa: N818  # a state of the other side, not a mistake of ours
    """No process answers that could start a release, or not in time."""


class NobodyThere(NobodyToUpgrade):
    """Nothing was sent: no process listens."""


class Upgraded(msgspec.Struct, frozen=True, kw_only=True):
    """The release that is in charge now, and its process."""

    version: str
    pid: int


def ask(path: Path, command: Sequence[str], *, timeout: float) -> Answer:
    """Send a request to the process at a path, and return its answer within `timeout` seconds.

    Raises NobodyToUpgrade, which is NobodyThere if nothing was sent.
    """
    lines = LineBuffer(_LIMIT)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout)
        try:
            connection.connect(str(path))
        except OSError as error:
            raise NobodyThere(f"{path}: {error.strerror or error}") from error
        try:
            connection.sendall(encode_question(wanted(command)))
            while chunk := connection.recv(_CHUNK):
                for line in lines.feed(chunk):
                    return decode_answer(line)
        except TimeoutError as error:
            raise NobodyToUpgrade(f"no answer within {timeout:g} s") from error
        except OSError as error:
            raise NobodyToUpgrade(f"{path}: {error.strerror or error}") from error
        except ControlError as error:
            raise NobodyToUpgrade(f"its answer cannot be read: {error}") from error
    raise NobodyToUpgrade("it has ended without an answer")


def upgraded(answer: Answer) -> Upgraded:
    """Return the release in charge from a positive answer; raises NobodyToUpgrade for any other."""
    try:
        return msgspec.convert(answer.values, Upgraded)
    except msgspec.ValidationError as error:
        raise NobodyToUpgrade(f"its answer cannot be read: {error}") from error
