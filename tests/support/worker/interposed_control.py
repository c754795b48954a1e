"""A control socket between a draining worker and the one that takes its sessions: it tells each step.

Lines and their descriptors are passed on unchanged, one question and one answer at a time.
"""

import contextlib
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

_MOST_DESCRIPTORS: Final = 253


@contextlib.contextmanager
def interposed(path: Path, target: Path, at: Callable[[str, str], None]) -> Iterator[None]:
    """Listen at `path` for what is meant for `target`; `at` is told of each message before it is passed on.

    It gets the command and `asked` or `answered`.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        listener.listen()
        thread = threading.Thread(target=_accept, args=(listener, target, at), daemon=True)
        thread.start()
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # accept ends
            thread.join()


def _accept(listener: socket.socket, target: Path, at: Callable[[str, str], None]) -> None:
    while True:
        try:
            asking, _ = listener.accept()
        except OSError:
            return
        with (
            asking,
            socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as answering,
            contextlib.suppress(OSError),  # either side may be killed at any moment
        ):
            answering.connect(str(target))
            _pass_on(asking, answering, at)


def _pass_on(asking: socket.socket, answering: socket.socket, at: Callable[[str, str], None]) -> None:
    while question := _message(asking, answering, lambda line: at(_command(line), "asked")):
        if not _message(answering, asking, lambda _, line=question: at(_command(line), "answered")):
            return


def _message(source: socket.socket, target: socket.socket, then: Callable[[bytes], None]) -> bytes:
    """Pass a line on with its descriptors, after `then` was called; return it, b"" at the end."""
    line, descriptors = b"", list[int]()
    try:
        while not line.endswith(b"\n"):
            chunk, received, _, _ = socket.recv_fds(source, 1 << 16, _MOST_DESCRIPTORS)
            descriptors += received
            if not chunk:
                return b""
            line += chunk
        then(line)
        if _gone(source):
            # As with the kernel: what was written arrives, and nothing can be written to the dead.
            target.shutdown(socket.SHUT_RD)
        sent = socket.send_fds(target, [line], descriptors) if descriptors else 0
        target.sendall(line[sent:])
    finally:
        for each in descriptors:
            os.close(each)
    return line


def _gone(peer: socket.socket) -> bool:
    try:
        return not peer.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True


def _command(line: bytes) -> str:
    return str(json.loads(line)["command"])
