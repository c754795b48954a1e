"""Load with every answer checked: long-lived sessions that exchange numbered lines, and new connections.

The servers are `support.peers.backend`. What may go wrong is counted apart, because each failure means
something else: a refused connection is a listener that was not there, a reset one is a queue or a session
that was dropped, a wrong answer is bytes mixed up, a late one a connection forgotten.
"""

from dataclasses import dataclass
from typing import Self

from support.processes.remote import Remote
from support.processes.waiting import wait_until


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One long-lived session. Times are Unix seconds, 0.0 for what has not happened.

    It was accepted between `started`, before connecting, and `answered`, when its first answer had come.
    """

    server: str
    started: float
    answered: float
    ended: float
    how: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What happened so far. `failures` counts new connections by what went wrong, empty when nothing did."""

    completed: int
    under_way: int
    failures: dict[str, int]
    failed_at: list[float]
    servers: dict[str, int]
    sessions: list[Session]
    lines: int
    latency_p50: float
    latency_p99: float
    latency_max: float

    @property
    def living(self) -> list[Session]:
        """Sessions that had an answer and are still open."""
        return [each for each in self.sessions if each.server and not each.ended]

    @property
    def ended(self) -> list[Session]:
        """Sessions that are over, for whatever reason."""
        return [each for each in self.sessions if each.ended]


class Load:
    """A running load generator. Use it as a context manager."""

    def __init__(
        self,
        *,
        port: int,
        sessions: int = 0,
        rate: float = 0.0,
        host: str = "127.0.0.1",
        pause: float = 3.0,
        renew: bool = False,
    ) -> None:
        """Start load; `rate` is new connections a second, `pause` seconds between lines of a session.

        With `renew` a session that ends is followed by another one.
        """
        self._remote = Remote(
            "support.load.load_generator",
            f"--host={host}",
            f"--port={port}",
            f"--sessions={sessions}",
            f"--rate={rate}",
            f"--pause={pause}",
            *(["--renew"] if renew else []),
        )
        self._sessions = sessions
        self.pid = self._remote.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._remote.close()

    def report(self) -> Report:
        """Return what happened so far."""
        return _report(self._remote.ask("report"))

    def wait_for_sessions(self, number: int | None = None) -> None:
        """Wait until so many sessions, or as many as were asked for, are open and have had an answer."""
        wanted = self._sessions if number is None else number
        wait_until(
            lambda: len(self.report().living) >= wanted, what=f"{wanted} sessions are open", timeout=30.0
        )

    def stop_new(self) -> None:
        """Start no more connections; those under way go on."""
        self._remote.ask("rate", rate=0)

    def set_rate(self, rate: float) -> None:
        """Start this many new connections a second."""
        self._remote.ask("rate", rate=rate)

    def open_sessions(self, number: int) -> None:
        """Open more long-lived sessions."""
        self._remote.ask("open", number=number)


def _report(values: dict[str, object]) -> Report:
    sessions = values.pop("sessions")
    assert isinstance(sessions, list)
    return Report(sessions=[Session(**each) for each in sessions], **values)  # type: ignore[arg-type]  # as printed below
