"""A control socket for a program with one loop (`net.loop.loop`), without greenlets.

A handler must not block. For longer work it returns a DeferredAnswer, which the end of the work resolves. A
connection has one question in progress, the next ones wait. Questions are answered in order of arrival, in
short slices of the loop's time, so a flood of them delays no deadline. If all places are taken, a new
connection replaces the one idle longest; if all places of readers are taken, it replaces one of the user with
the most.
"""

import contextlib
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Final

from appliance.net.control import permissions
from appliance.net.control.command_table import CommandTable, OnError
from appliance.net.control.deferred_answer import DeferredAnswer
from appliance.net.control.loop_connection import LoopConnection
from appliance.net.control.places import Places
from appliance.net.control.unix_listener import SocketName, listen_for_readers
from appliance.net.loop.loop import Loop
from appliance.net.privileges.peer_credentials import peer_credentials
from appliance.wire.lines.control import Answer, ControlError, Question

_MOST_CONNECTIONS: Final = 64
_SLICE: Final = 0.001  # seconds of a turn of the loop after which further questions wait for the next turn
_KEEP: Final = 1.0  # seconds between two checks that the socket still exists
_PAUSE: Final = 0.5  # seconds until a connection is accepted again after the machine ran out of descriptors

Handler = Callable[[Question], Answer | DeferredAnswer]


class LoopControlServer:
    """Answers one program's commands on a unix socket, from its loop.

    A handler's error is answered, and reported to `on_error`. `for_readers` are the read-only commands: users
    other than root and the owner can give no others.
    """

    def __init__(
        self,
        loop: Loop,
        path: Path,
        handlers: Mapping[str, Handler],
        *,
        on_error: OnError,
        for_readers: Collection[str] = (),
    ) -> None:
        self._loop = loop
        self._path = path
        self._commands = CommandTable(handlers, for_readers=for_readers, on_error=on_error)
        self._on_error = on_error
        self._connections: dict[LoopConnection, None] = {}  # in order: the one idle longest is first
        self._readers: Places[LoopConnection] = Places()
        self._listener = listen_for_readers(path)
        self._listener.settimeout(0)
        self._name = SocketName(path)
        self._again: float | None = None
        self._look_at = time.monotonic() + _KEEP
        self._listen()
        loop.add(self)

    @property
    def deadline(self) -> float | None:
        """Return when to wake: the arrival of the oldest question, or the next check of the socket."""
        first = self._first
        at = self._again if first is None else first.since
        return self._look_at if at is None else min(at, self._look_at)

    def tick(self, now: float) -> None:
        """Answer questions that came until `now`, one per connection, until the slice is over."""
        if self._again is not None and now >= self._again:
            self._again = None
            self._listen()
        if now >= self._look_at:
            self._look_at = now + _KEEP
            self._keep()
        until = time.monotonic() + _SLICE
        while (first := self._first) is not None and first.since <= now:
            first.next()
            if time.monotonic() >= until:
                break

    @property
    def _first(self) -> LoopConnection | None:
        return min(
            (each for each in self._connections if each.waiting), key=lambda each: each.since, default=None
        )

    def close(self) -> None:
        """Stop listening, remove the socket unless it is a successor's, and close the connections."""
        self._loop.remove(self)
        self._name.remove()
        self._loop.forget(self._listener.fileno())
        self._listener.close()
        for each in list(self._connections):
            each.close()

    def result(self, line: bytes, *, owner: bool) -> Answer | DeferredAnswer:
        """Return the answer to one line, perhaps deferred; raises ControlError for an invalid question."""
        return self._commands.answer(line, owner=owner, run=lambda handler, question: handler(question))

    def broken(self, error: ControlError) -> None:
        """Report a connection that does not send control lines."""
        self._on_error("line", error)

    def ended(self, connection: LoopConnection) -> None:
        """Remove a closed connection, which makes room for another."""
        self._connections.pop(connection, None)
        self._readers.leave(connection)
        self._listen()

    def rested(self, connection: LoopConnection) -> None:
        """Move a connection that has its answers to the end of the idle ones."""
        if connection in self._connections:
            self._connections[connection] = self._connections.pop(connection)
            self._readers.rest(connection)
            self._listen()

    def _keep(self) -> None:
        """Listen again if the socket was removed: no client could find it."""
        if not self._name.is_missing:
            return
        with contextlib.suppress(OSError):  # the directory does not exist yet, or is full
            listener = listen_for_readers(self._path)
            self._loop.forget(self._listener.fileno())
            self._listener.close()
            self._listener, self._name = listener, SocketName(self._path)
            self._listener.settimeout(0)
            self._listen()

    def _listen(self) -> None:
        if self._listener.fileno() >= 0:
            closed = self._again is not None or (self._is_full and self._idlest is None)
            self._loop.read(self._listener.fileno(), None if closed else self._accept)

    def _accept(self) -> None:
        try:
            accepted, _ = self._listener.accept()
        except BlockingIOError:
            return
        except OSError as error:  # out of descriptors
            self._on_error("accept", error)
            self._again = time.monotonic() + _PAUSE
            self._listen()
            return
        accepted.settimeout(0)
        owner = permissions.is_owner(accepted)
        if not owner and not self._has_room_for_reader():
            accepted.close()
            return
        if self._is_full and self._idlest is not None:
            self._idlest.close()
        made = LoopConnection(self._loop, self, accepted, owner=owner)
        self._connections[made] = None
        if not owner:
            self._readers.enter(made, peer_credentials(accepted).user)
        self._listen()

    def _has_room_for_reader(self) -> bool:
        """Return whether one more reader fits: if need be another gives way; the owner always has room."""
        if len(self._readers) < permissions.MOST_READERS:
            return True
        leaver = self._readers.give_way()
        if leaver is not None:
            leaver.close()
        return leaver is not None

    @property
    def _is_full(self) -> bool:
        return len(self._connections) >= _MOST_CONNECTIONS

    @property
    def _idlest(self) -> LoopConnection | None:
        return next((each for each in self._connections if each.idle), None)
