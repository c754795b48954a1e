"""A relay between two `migrate` that has the nodes' certificate: it knows each message, and stops at one.

It stands before one node, whose kernel leads to it what others send to the port of `migrate`, and exchanges
messages as their protocol has them: a greeting both ways, then answer after question.
"""

import contextlib
import select
import socket
import ssl
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final, Self

from support.network.namespaces import INTERFACE, Node

from appliance.wire.session_migration import (
    PREFIX,
    Ask,
    Commit,
    Message,
    Offer,
    Prepared,
    Settled,
    decode,
    encode,
    length,
)

MESSAGES: Final = (
    *("hello", "hello back", "offer", "prepared", "commit", "settled", "ask", "settled when asked"),
)
"""All of the protocol, in their order; `ask` comes only after a connection has broken with a commit."""

_SECONDS: Final = 60.0
_LOOK: Final = 0.02  # seconds until the other side is looked at
_NAMES: Final = {Offer: "offer", Prepared: "prepared", Commit: "commit", Settled: "settled", Ask: "ask"}
_RULES: Final = """
add table inet relay
add chain inet relay lead {{ type nat hook prerouting priority dstnat; }}
add rule inet relay lead iifname {interface} tcp dport {port} redirect to :{relay}
add chain inet relay cut {{ type filter hook prerouting priority raw; }}
"""


class _Broken(Exception):  # noqa: N818  # no error: the relay ends a connection
    """The connection ends here."""


class MessageRelay:
    """Relays to the port of one node. Use it as a context manager.

    `stopped` is set when it has stopped at the message that `stop_at` named, before the message is on its
    way; `batch` is how many sessions were under way then.
    """

    def __init__(self, node: Node, pem: Path, *, port: int) -> None:
        self.stopped = threading.Event()
        self.batch = 0
        self._node, self._pem, self._port = node, pem, port
        self._name = self._breaks_at = ""
        self._act: Callable[[], bool] = lambda: True
        self._closes = False
        with node.inside():
            self._listener = socket.create_server(
                ("::", 0), family=socket.AF_INET6, dualstack_ipv6=True, backlog=64
            )
        self._accepting = threading.Thread(target=self._accept)

    def __enter__(self) -> Self:
        rules = _RULES.format(interface=INTERFACE, port=self._port, relay=self._listener.getsockname()[1])
        for each in rules.strip().splitlines():
            self._node.run(["nft", each])
        self._accepting.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closes = True
        self._node.run(["nft", "delete table inet relay"], check=False)
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join(_SECONDS)
        self._listener.close()

    def stop_at(self, name: str, act: Callable[[], bool]) -> None:
        """Call `act` once at the next message of that name; it returns whether the message goes on then.

        For those of a question about a lost commit, the connection breaks there first: at its answer for
        `ask`, at the commit itself for the other.
        """
        self.stopped.clear()
        self.batch, self._act = 0, act
        self._breaks_at = {"ask": "settled", "settled when asked": "commit"}.get(name, "")
        self._name = name

    def cut(self) -> None:
        """Lose every packet from and to other nodes' `migrate`."""
        self._node.run(["nft", f"add rule inet relay cut iifname {INTERFACE} tcp dport {self._port} drop"])

    def heal(self) -> None:
        """End `cut`."""
        self._node.run(["nft", "flush chain inet relay cut"])

    def _accept(self) -> None:
        while not self._closes:
            with contextlib.suppress(OSError):
                plain, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(plain,), daemon=True).start()

    def _serve(self, plain: socket.socket) -> None:
        with contextlib.suppress(OSError, _Broken), plain, self._node.inside():
            plain.settimeout(_SECONDS)
            with (
                _context(self._pem, ssl.PROTOCOL_TLS_SERVER).wrap_socket(plain, server_side=True) as giver,
                socket.create_connection(("127.0.0.1", self._port), timeout=_SECONDS) as there,
                _context(self._pem, ssl.PROTOCOL_TLS_CLIENT).wrap_socket(there) as taker,
            ):
                self._relay(giver, taker)

    def _relay(self, giver: ssl.SSLSocket, taker: ssl.SSLSocket) -> None:
        sides, asked, batch = (giver, taker), False, 0
        while True:
            for source, target in (sides, sides[::-1]):
                message = _received(source, target)
                name = _NAMES.get(type(message), "hello" if source is giver else "hello back")
                name = "settled when asked" if name == "settled" and asked else name
                asked = isinstance(message, Ask)
                if isinstance(message, Offer):
                    batch = len(message.sessions)
                self._pass(name, batch)
                target.sendall(encode(message))

    def _pass(self, name: str, batch: int) -> None:
        if name == self._breaks_at:
            self._breaks_at, self.batch = "", batch
            raise _Broken
        if name == self._name and not self._breaks_at:
            self._name, self.batch = "", self.batch or batch
            passes = self._act()
            self.stopped.set()
            if not passes:
                raise _Broken


def _received(source: ssl.SSLSocket, other: ssl.SSLSocket) -> Message:
    """Return the next message of one side, unless the other one has ended the connection."""
    while not source.pending() and not _readable(source, _LOOK):
        # What is there may be its next message, or tickets of TLS: it is only looked at.
        if _readable(other, 0.0) and not socket.socket.recv(other, 1, socket.MSG_PEEK):
            raise _Broken
    return decode(_read(source, length(_read(source, PREFIX))))


def _readable(side: socket.socket, seconds: float) -> bool:
    return bool(select.select((side,), (), (), seconds)[0])


def _read(source: ssl.SSLSocket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = source.recv(size - len(data))
        if not piece:
            raise _Broken
        data += piece
    return bytes(data)


def _context(pem: Path, purpose: int) -> ssl.SSLContext:
    made = ssl.SSLContext(purpose)
    made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    made.load_cert_chain(pem)
    return made
