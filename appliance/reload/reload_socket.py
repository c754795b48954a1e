"""Reload sockets: lines come in and answers go out, whatever the clients do.

A client may hold its connection for days, send many lines, and never read: lines of one connection are
executed and answered in order, and an answer that finds the buffer full is lost as a whole. A path that
cannot be listened on now (its directory does not exist yet, another program has it) is tried again, and so is
one that was removed. Sockets belong to their owner alone (mode 0600).
"""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import gevent
from gevent import Greenlet, socket
from structlog.typing import FilteringBoundLogger

from appliance.net.control.kept_listener import RETRY, KeptListener
from appliance.net.loop.turns import Turns, until_next
from appliance.wire.lines.control import Answer, encode_answer
from appliance.wire.lines.reload_line import ReloadLines, SocketLine

Respond = Callable[[SocketLine], Answer]
"""Executes one line and returns its answer; blocks the connection's greenlet until its turn is done."""

_CHUNK: Final = 4096  # bytes: as many lines as fit into a slice of time
_LAST_ANSWER: Final = 5.0  # seconds for a client that has closed its side to read the rest of a line


class Outbox:
    """The answers of one connection: whole lines or none, without ever waiting."""

    def __init__(self, connection: socket.socket) -> None:
        self.lost = 0
        self._connection = connection
        self._rest: Greenlet | None = None

    def put(self, line: bytes) -> None:
        """Send a line, or count it as lost if the client does not read."""
        sent = 0 if self._finishing() else self._write(line)
        if not sent:
            self.lost += 1
        elif sent < len(line):
            self._rest = gevent.spawn(self._finish, line[sent:])

    def close(self) -> None:
        """Give a partly written line a last chance."""
        if self._rest is not None:
            self._rest.join(_LAST_ANSWER)
            self._rest.kill()

    def _finishing(self) -> bool:
        return self._rest is not None and not self._rest.ready()

    def _write(self, line: bytes) -> int:
        try:
            return os.write(self._connection.fileno(), line)  # gevent's descriptors do not block
        except OSError:
            return 0

    def _finish(self, rest: bytes) -> None:
        try:
            self._connection.sendall(rest)
        except OSError:
            self.lost += 1


class ReloadSockets:
    """The sockets of a set of paths, kept in place until `close`."""

    def __init__(self, respond: Respond, log: FilteringBoundLogger) -> None:
        self._respond = respond
        self._log = log
        self._turns = Turns()
        self._listeners: dict[Path, KeptListener] = {}
        self._keeper = gevent.spawn(self._keep)

    @property
    def failures(self) -> dict[str, str]:
        """Return, for each path that is not listened on, why."""
        return {str(path): each.failure for path, each in self._listeners.items() if each.failure}

    def follow(self, paths: Iterable[Path]) -> None:
        """Listen on exactly these paths; connections of removed paths continue."""
        wanted = set(paths)
        for path in self._listeners.keys() - wanted:
            self._listeners.pop(path).close()
        for path in wanted - self._listeners.keys():
            self._listeners[path] = KeptListener(path, self._serve, self._log, name="reload-socket")

    def close(self) -> None:
        """Stop listening and remove the sockets that are ours."""
        self._keeper.kill()
        self.follow(())

    def _keep(self) -> None:
        while True:
            gevent.sleep(until_next(RETRY))
            for each in list(self._listeners.values()):
                each.keep()

    def _serve(self, connection: socket.socket) -> None:
        lines, outbox = ReloadLines(), Outbox(connection)
        try:
            while chunk := connection.recv(_CHUNK):
                self._turns.give()
                for line in lines.feed(chunk):
                    self._turns.give()
                    outbox.put(encode_answer(self._respond(line)))
        except OSError:
            pass  # the client is gone, with answers unread: what it sent before has been executed
        finally:
            if lines.unfinished:
                self._log.info("reload-line-unfinished")
            outbox.close()
            connection.close()
