"""A connection on which a server has answered a check, kept for the next ones (`check: {reuse: true}`).

What a kept connection cannot see, and a new one does:

- that the server's listener is closed, or its queue of connections full, or that it has no descriptor left:
  connections that are there go on;
- that a packet filter or a route lets nobody new in;
- that the certificate has expired or was replaced, or that the file of CA certificates was;
- that another process, or after a failover another machine, has the address: this one may still be answered
  by the former.

So a connection is kept for REUSE_CHECKS checks and REUSE_SECONDS at the most, and never after a check that
has failed: those are the bounds of how much later than without `reuse` such a server is found. A client that
cannot connect shows it earlier (`error_limit`): the check that it leads to makes a new connection.

The other way round, a kept connection takes no server down. Whatever fails on it (closed meanwhile, forgotten
by a packet filter, a bad answer of a process that is about to end) is asked again on a new connection in what
is left of the check's time, and that is what counts. The one exception is a server whose kernel acknowledges
the question, and which then says nothing for the whole of that time.
"""

import socket
import struct
from typing import Final

from appliance.model.snapshot.pools import REUSE_CHECKS, REUSE_SECONDS, Check
from appliance.net.probing.answer import Judgement, judged_answer
from appliance.net.probing.peer import FloodError, Stream
from appliance.wire.http.http_response import ResponseError
from appliance.wire.http.response_body import ResponseBody

_TO_ACKNOWLEDGE: Final = 0.25
"""Part of the time for connecting in which a server's kernel has to acknowledge a question."""


_RESET: Final = struct.pack("ii", 1, 0)


class Connection:
    """A connection to a server that is asked by HTTP; `made_at` is monotonic seconds.

    It has one owner, who closes it. That ends it by RST once a question has been judged.
    """

    def __init__(self, connected: socket.socket, stream: Stream, check: Check, *, made_at: float) -> None:
        self._socket = connected
        self._stream = stream
        self._check = check
        self._made_at = made_at
        self._checks = 0
        self._answer = ResponseBody(check.method)

    def ask(self, request: bytes) -> Judgement:
        """Ask, and return what the answer means; raises ResponseError, FloodError and OSError."""
        self._checks += 1
        self._answer = ResponseBody(self._check.method)
        self._stream.send(request)
        judgement = judged_answer(self._stream, self._check, self._answer)
        reset_on_close(self._socket)
        return judgement

    def keep(self) -> None:
        """Have the kernel give up a question that nobody acknowledges long before the check's time is over.

        A packet filter that has forgotten the connection drops its packets without a word (tcp(7),
        TCP_USER_TIMEOUT).
        """
        seconds = min(self._check.timeout_connect, self._check.timeout) * _TO_ACKNOWLEDGE
        option = max(int(seconds * 1000), 1)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, option)

    def fit(self, now: float) -> bool:
        """Tell whether the next check may be made here; reads what has come since the last one.

        That is the rest of the last answer, and maybe the server's end of the connection.
        """
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
    """Have a connection end by RST, whoever closes it (SO_LINGER with a time of zero, socket(7))."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
