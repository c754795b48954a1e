"""The appliance that runs in a runtime directory, asked by `run` to make way for another one.

All that can fail comes before its answer, and then the running appliance has changed nothing. After a
positive answer it stands by: it continues as before if the connection ends before it was relieved.
"""

import array
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from appliance.net.privileges.peer_credentials import peer_credentials
from appliance.wire.lines.control import ControlError, decode_answer, encode_question
from appliance.wire.lines.line_buffer import LineBuffer
from appliance.wire.lines.succession import Party, SuccessionError, party, request

_PATIENCE: Final = 10.0  # seconds for its answer: its loop sometimes waits for a request to supervisord
_CHUNK: Final = 65536
_LIMIT: Final = 65536  # bytes of its answer
UNSEEN: Final = "its processes are not visible here: both containers need the same --pid=container:NAME"
"""The refusal for an appliance in another PID namespace, which the kernel shows as process 0."""

_RIGHTS: Final = socket.CMSG_SPACE(4 * 4)  # more descriptors than the one expected


class IncumbentRefused(Exception):  # noqa: N818  # a state of the other side, not a mistake of ours
    """The running appliance does not make way, and gives the reason."""


class NoIncumbent(Exception):  # noqa: N818  # likewise
    """No process answers that could make way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Incumbent:
    """The appliance that stands by for us. `connection` and `lock` are descriptors, owned by the caller."""

    connection: int
    lock: int
    pid: int
    party: Party


def ask(path: Path, ours: Party) -> Incumbent:
    """Ask the process that listens at `path` to stand by; raises IncumbentRefused and NoIncumbent."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(_PATIENCE)
    try:
        connection.connect(str(path))
        found = _asked(connection, ours)
    except OSError as error:
        connection.close()
        raise NoIncumbent(f"{path}: {error.strerror or error}") from error
    except (ControlError, SuccessionError, IncumbentRefused) as error:
        connection.close()
        raise IncumbentRefused(str(error)) from error
    connection.detach()
    return found


def _asked(connection: socket.socket, ours: Party) -> Incumbent:
    pid = peer_credentials(connection).pid
    if not pid:
        raise IncumbentRefused(UNSEEN)
    connection.sendall(encode_question(request(ours)))
    return _granted(connection, pid)


def _granted(connection: socket.socket, pid: int) -> Incumbent:
    lines, rights = LineBuffer(_LIMIT), array.array("i")
    try:
        while True:
            chunk, ancillary, _, _ = connection.recvmsg(_CHUNK, _RIGHTS, socket.MSG_CMSG_CLOEXEC)
            for level, kind, data in ancillary:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    rights.frombytes(data[: len(data) - len(data) % rights.itemsize])
            if not chunk:
                raise IncumbentRefused("it has closed the connection without an answer")
            for line in lines.feed(chunk):
                return _read(line, connection, rights, pid)
    finally:
        while rights:
            os.close(rights.pop())


def _read(line: bytes, connection: socket.socket, rights: "array.array[int]", pid: int) -> Incumbent:
    answer = decode_answer(line)
    if not answer.ok:
        raise IncumbentRefused(answer.reason)
    theirs = party(answer.values)
    if not rights:
        raise IncumbentRefused("it has sent no lock")
    return Incumbent(connection=connection.fileno(), lock=rights.pop(0), pid=pid, party=theirs)
