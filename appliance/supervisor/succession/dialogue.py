"""The connection with the other one of two supervisords, handled between two turns of supervisord's loop."""

from collections.abc import Callable, Sequence

from appliance.supervisor.succession.line_connection import LineConnection
from appliance.wire.lines.control import bad, encode_answer


class Due:
    """What is to be done at the next turn: what it changes is what the loop goes round at this moment."""

    def __init__(self) -> None:
        self._actions: list[Callable[[float], None]] = []

    def add(self, action: Callable[[float], None]) -> None:
        """Have an action called with the time."""
        self._actions.append(action)

    def run(self, now: float) -> None:
        """Do everything that is due."""
        while self._actions:
            self._actions.pop(0)(now)


class Dialogue:
    """The one connection that is the lifeline of both; what comes over one that was left is not heard."""

    def __init__(self, due: Due) -> None:
        self._due = due
        self._other: LineConnection | None = None

    def begin(
        self,
        connection: LineConnection,
        *,
        said: Callable[[bytes, float], None],
        gone: Callable[[float], None],
    ) -> None:
        """Have `said` called with each line of the other side, and `gone` when it has ended."""

        def hear(line: bytes) -> None:
            self._due.add(lambda now: said(line, now) if self._other is connection else None)

        def notice() -> None:
            self._due.add(lambda now: gone(now) if self._other is connection else None)

        connection.on_line, connection.on_end = hear, notice
        self._other = connection

    def say(self, line: bytes, descriptors: Sequence[int] = ()) -> None:
        """Send a line, where there is still somebody."""
        if self._other:
            self._other.send(line, descriptors)

    def hang_up(self) -> None:
        """End the connection."""
        if self._other:
            self._other.close()
        self._other = None


def refuse(connection: LineConnection, reason: str) -> None:
    """Say why not, and end a connection."""
    connection.send(encode_answer(bad(reason)))
    connection.close()
