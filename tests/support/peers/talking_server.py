"""A server of a protocol of its own, in threads of the test: what it answers to what is scripted."""

import contextlib
import socket
import ssl
import threading
import time
from typing import Self

from support.values.certificates import Certificates


class TalkingServer:
    """A server that greets, and answers to what it is told by how that begins; None ends the connection.

    A `|` divides the segments of an answer. `answers` may change; `heard` is all that clients said, and how
    they left: `end` or `reset`.
    """

    def __init__(
        self,
        greeting: bytes,
        answers: dict[bytes, bytes | None],
        *,
        resets: bool = False,
        files: Certificates | None = None,
    ) -> None:
        self.answers = answers
        self._greeting, self._resets, self._files = greeting, resets, files
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._stopped = threading.Event()
        self._clients: list[threading.Thread] = []
        self._thread = threading.Thread(target=self._accept)
        self.port: int = self._listener.getsockname()[1]
        self.heard: list[str] = []

    def __enter__(self) -> Self:
        self._listener.settimeout(0.05)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        for each in (self._thread, *self._clients):
            each.join()
        self._listener.close()

    def _accept(self) -> None:
        while not self._stopped.is_set():
            with contextlib.suppress(TimeoutError):
                connection, _ = self._listener.accept()
                self._clients.append(threading.Thread(target=self._serve, args=(connection,)))
                self._clients[-1].start()

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(5)
        with contextlib.ExitStack() as stack:
            stack.enter_context(connection)
            try:
                if self._files is not None:
                    connection = stack.enter_context(_secure(connection, self._files))
                connection.settimeout(0.05)
                connection.sendall(self._greeting)
                self._converse(connection)
            except OSError:
                self.heard.append("reset")

    def _converse(self, connection: socket.socket) -> None:
        while not self._stopped.is_set():
            with contextlib.suppress(TimeoutError):
                said = connection.recv(4096)
                self.heard.append(said.decode("latin-1") or "end")
                words = [word for word in self.answers if said.startswith(word)]
                answer = self.answers[words[0]] if words else b""
                if not said or answer is None:
                    if self._resets:
                        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                    return
                for piece in answer.split(b"|"):
                    connection.sendall(piece)
                    time.sleep(0.02)  # what makes a segment of each piece


def _secure(connection: socket.socket, files: Certificates) -> ssl.SSLSocket:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.chain, files.key)
    return context.wrap_socket(connection, server_side=True)
