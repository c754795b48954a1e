"""Batches of sessions that one worker gives to another one, over one connection.

A batch is offered with copies of its descriptors, and given up here with the word `take`: at every moment one
process reads and writes. Sessions under way with `take` when the other worker dies are lost: it may have read
bytes that no other process has.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from structlog.typing import FilteringBoundLogger

from appliance.net.control.control_client import ControlClient, ControlUnavailable
from appliance.wire.lines import moving_sessions
from appliance.wire.lines.control import Question
from appliance.wire.lines.moving_sessions import Taken
from appliance.worker.relay.session import moving
from appliance.worker.relay.session.session import Session
from appliance.worker.relay.session.session_phases import CLOSED
from appliance.worker.session_ids import SessionIds

_PATIENCE: Final = 5.0
"""Seconds for an answer; meanwhile a batch is held still."""


class SessionTransfer:
    """The way to the process whose control socket is at `path`; `on_left` is called with how many left.

    `on_lost` is called with how many of them were lost there, and why. `more` accompanies each offer, and
    `settled_within` is seconds for the answer to `take`.
    """

    def __init__(
        self,
        path: Path,
        ids: SessionIds,
        *,
        on_left: Callable[[int], None],
        log: FilteringBoundLogger,
        on_lost: Callable[[int, str], None] = lambda _number, _reason: None,
        more: Mapping[str, object] = MappingProxyType({}),
        settled_within: float = _PATIENCE,
    ) -> None:
        self._path, self._ids, self._on_left, self._log, self._more = path, ids, on_left, log, more
        self._on_lost, self._settled_within = on_lost, settled_within
        self._client: ControlClient | None = None

    def close(self) -> None:
        """Close the connection: what was offered over it and not taken is dropped there."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def give(self, batch: Sequence[Session]) -> dict[int, str]:
        """Offer sessions held still; return the numbers of those that are refused there, with why.

        All others that have not since ended have left. Raises ControlUnavailable and ControlError, and then
        all are still here.
        """
        if self._client is None:
            self._client = ControlClient(self._path, timeout=_PATIENCE)
        client = self._client
        offered = [each for each in batch if each.phase != CLOSED]  # it may have ended meanwhile
        stages = [moving.stage(each) for each in offered]
        reasons = self._offer(client, offered)
        if client.closed.is_set():
            raise ControlUnavailable("it exited with an offer")
        answered = tuple(zip(offered, reasons, stages, strict=True))
        going = [each for each, why, before in answered if not why and moving.stage(each) == before]
        # None too: the other worker drops what is offered and not taken.
        self._take(client, going, tuple(offered.index(each) for each in going))
        return {each.number: why for each, why, _ in answered if why}

    def _offer(self, client: ControlClient, batch: Sequence[Session]) -> tuple[str, ...]:
        """Return for each session "", or why the other worker cannot take it."""
        described = tuple(moving.description(each, self._ids.of(each.number)) for each in batch)
        for each in batch:
            moving.note_copies(each)
        values = {**moving_sessions.values(moving_sessions.offer_of(described)), **self._more}
        answer = client.ask(
            Question(command="offer", values=values),
            timeout=_PATIENCE,
            descriptors=[each for session in batch for each in moving.descriptors(session)],
        )
        return moving_sessions.refusals(answer, len(batch))

    def _take(self, client: ControlClient, going: Sequence[Session], places: tuple[int, ...]) -> None:
        """Send that sessions are now the other worker's: whatever it answers, they are not ours any more.

        They leave with the last byte of the word, before anything else runs here. If it cannot be sent, as
        the other worker is gone, they stay, and this raises ControlUnavailable.
        """
        question = Question(command="take", values=moving_sessions.values(Taken(places=places)))
        left = False

        def leave() -> None:
            nonlocal left
            left = True
            for each in going:
                moving.leave(each)
            self._on_left(len(going))

        try:
            answer = client.ask(question, timeout=self._settled_within, on_sent=leave)
        except ControlUnavailable as error:
            if not left:
                raise
            self.close()
            self._lost(len(going), str(error))
            return
        if not answer.ok:
            self._lost(len(going), answer.reason)

    def _lost(self, number: int, reason: str) -> None:
        self._log.error("sessions-lost", sessions=number, reason=reason)
        self._on_lost(number, reason)
