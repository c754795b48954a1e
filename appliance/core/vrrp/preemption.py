"""When an active has become worse than it was: what a Backup makes of it, and what the active itself does.

`preempt` is RFC 9568's Preempt_Mode and `preempt_delay` keepalived's. Without `preempt` a better router that
returns does not take from a healthy active; an active that has become worse during its tenure is not healthy.
"""

from typing import Final

from appliance.core.vrrp.election_messages import Heard

OTHERS: Final = 32
"""Other routers whose priority is remembered: senders can be made up."""


class ActivePeer:
    """The active that a Backup hears, and the best priority that it has advertised."""

    __slots__ = ("_best", "_last", "_sender")

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Note that its time is over."""
        self._sender = b""
        self._best = 0
        self._last = 0

    def left(self, sender: bytes) -> None:
        """Note that this active leaves."""
        if sender == self._sender:
            self.forget()

    def gave_way_to(self, heard: Heard) -> None:
        """Take the advertisement of whom we gave way to."""
        self._note(heard)

    def may_be_preempted(self, heard: Heard, *, own: int, preempt: bool) -> bool:
        """Take an advertisement; return whether a Backup of priority `own` may take over from its sender.

        It may from a worse one if it preempts, or if the sender was a better one before. Where it hears a
        better active than itself, that one sees to the sender.
        """
        contested = heard.sender != self._sender and self._last >= own
        degraded = self._note(heard)
        return heard.priority < own and not contested and (preempt or degraded)

    def _note(self, heard: Heard) -> bool:
        if heard.sender != self._sender:
            self._sender = heard.sender
            self._best = heard.priority
        self._best = max(self._best, heard.priority)
        self._last = heard.priority
        return heard.priority < self._best


class PreemptOffer:
    """What an active that must not be preempted does when its own priority falls.

    Its Backup may be one that never takes over from a living active, as keepalived with `nopreempt`. So when
    nobody has come for a down interval it says priority 0 once and keeps the addresses: a better router takes
    over and stays, a worse one is answered and gives them back. Where it has heard others, and every one of
    them is worse still, an offer would only be taken by a worse one for a moment, and none is made.
    """

    __slots__ = ("_at", "_best", "_others")

    def __init__(self) -> None:
        self._at: float | None = None
        self._best = 0
        self._others: dict[bytes, int] = {}

    def heard(self, heard: Heard) -> None:
        """Note what another router says of itself, in whatever state we are."""
        self._others.pop(heard.sender, None)
        if heard.priority:
            self._others[heard.sender] = heard.priority  # at the end: the first was heard longest ago
        if len(self._others) > OTHERS:
            del self._others[next(iter(self._others))]

    def begin(self, priority: int) -> None:
        """Begin a tenure of ours with this priority."""
        self._at = None
        self._best = priority

    def priority_changed(self, priority: int, *, before: int, at: float) -> None:
        """Take a new priority of ours: a fall plans an offer for `at`, a full recovery takes it back."""
        if priority < before:
            self._at = at
        elif priority >= self._best:
            self._at = None
            self._best = priority

    def due(self, now: float, *, own: int) -> bool:
        """Whether the offer is to be made by a router of priority `own`; True only once for each fall."""
        if self._at is None or now < self._at:
            return False
        self._at = None
        return not self._others or max(self._others.values()) > own
