"""The connection between two supervisords, handled between two turns of supervisord's loop."""

from collections.abc import Callable, Sequence

from appliance.supervisor.succession.line_connection import LineConnection
from appliance.wire.lines.control import bad, encode_answer


class Due:
    """Work for the next turn: it changes collections that the loop is iterating over at this moment."""

    def __init__(self) -> None:
        self._actions: list[Callable[[float], None]] = []

    def add(self, action: Callable[[float], None]) -> None:
        """Call an action with the time at the next turn."""
        self._actions.append(action)

    def run(self, now: float) -> None:
        """Do everything that is due."""
        while self._actions:
            self._actions.pop(0)(now)


class Dialogue:
    """The one connection that is the lifeline of both; lines that arrive on an abandoned one are ignored."""

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
        """Call `said` with each line of the other side, and `gone` when its end is closed."""

        def receive(line: bytes) -> None:
            self._due.add(lambda now: said(line, now) if self._other is connection else None)

        def notice() -> None:
            self._due.add(lambda now: gone(now) if self._other is connection else None)

        connection.on_line, connection.on_end = receive, notice
        self._other = connection

    def send(self, line: bytes, descriptors: Sequence[int] = ()) -> None:
        """Send a line, if there is still a connection."""
        if self._other:
            self._other.send(line, descriptors)

    def hang_up(self) -> None:
        """Close the connection."""
        if self._other:
            self._other.close()
        self._other = None


def refuse(connection: LineConnection, reason: str) -> None:
    """Send the reason of a refusal, and close a connection."""
    connection.send(encode_answer(bad(reason)))
    connection.close()
