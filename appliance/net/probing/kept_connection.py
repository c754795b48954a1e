"""A connection on which a server answered a check, kept for the next ones (`check: {reuse: true}`).

A kept connection does not detect what a new one does:

- that the server's listener is closed, its accept queue full, or its descriptors used up: existing
  connections continue;
- that a packet filter or a route blocks new connections;
- that the certificate has expired or was replaced, or that the CA file was replaced;
- that another process, or after a failover another machine, has the address: the former one may still answer.

So a connection is kept for at most REUSE_CHECKS checks and REUSE_SECONDS, and never after a failed check:
these limit how much later than without `reuse` such a server is detected. A client that cannot connect
reveals it earlier (`error_limit`): the check that follows opens a new connection.

Conversely, a kept connection takes no server down. After any failure on it (closed meanwhile, forgotten by a
packet filter, a bad answer of a process about to exit) the request is repeated on a new connection in the
rest of the check's time, and that result counts. The one exception is a server whose kernel acknowledges the
request, and which then sends nothing for all of that time.
"""

import socket
import struct
from typing import Final

from appliance.model.snapshot.pools import REUSE_CHECKS, REUSE_SECONDS, Check
from appliance.net.probing.answer import Judgement, answer_to, judged_answer
from appliance.net.probing.peer import FloodError, Stream
from appliance.wire.http.http_response import ResponseError

_TO_ACKNOWLEDGE: Final = 0.25
"""Part of the connect time-out within which a server's kernel must acknowledge a request."""


_RESET: Final = struct.pack("ii", 1, 0)


class Connection:
    """A connection for HTTP checks; its owner closes it, by RST once an answer was judged."""

    def __init__(self, connected: socket.socket, stream: Stream, check: Check, *, made_at: float) -> None:
        self._socket = connected
        self._stream = stream
        self._check = check
        self._made_at = made_at
        self._checks = 0
        self._answer = answer_to(check)

    def ask(self, request: bytes) -> Judgement:
        """Send the request, and return the result; raises ResponseError, FloodError and OSError."""
        self._checks += 1
        self._answer = answer_to(self._check)
        self._stream.send(request)
        judgement = judged_answer(self._stream, self._check, self._answer)
        reset_on_close(self._socket)
        return judgement

    def keep(self) -> None:
        """Make the kernel give up an unacknowledged request long before the check's time is over.

        A packet filter that has forgotten the connection drops its packets silently (tcp(7),
        TCP_USER_TIMEOUT).
        """
        seconds = min(self._check.timeout_connect, self._check.timeout) * _TO_ACKNOWLEDGE
        option = max(int(seconds * 1000), 1)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, option)

    def fit(self, now: float) -> bool:
        """Return whether the next check may use it; reads what came since: the last answer's rest, a FIN."""
        if self._checks >= REUSE_CHECKS or now - self._made_at >= REUSE_SECONDS:
            return False
        self._stream.ask_again()
        try:
            while (data := self._stream.waiting()) is not None:
                if not data:
                    return False
                self._answer.feed(data)
        except (OSError, ResponseError, FloodError):
            return False
        return self._answer.persists

    def close(self) -> None:
        """End the connection."""
        self._socket.close()


def reset_on_close(connection: socket.socket) -> None:
    """Make any close of a connection an RST (SO_LINGER with a time of zero, socket(7))."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
