"""Whether a Backup may take over from a living active, and what an active does when its priority falls.

`preempt` is RFC 9568's Preempt_Mode (section 6.1), `preempt_delay` keepalived's. Without `preempt` a better
router that returns does not take over from a healthy active. An active whose priority has fallen since it
became active is not healthy: keepalived with `nopreempt` and a track weight never fails over, a frequent
complaint of its users. Here it does.
"""

from typing import Final

from appliance.core.vrrp.election_messages import ReceivedAdvert

OTHERS: Final = 32
"""How many other routers' priorities are kept at most: senders can be forged."""


class ActivePeer:
    """The active router that a Backup follows: its address, its best priority and its last one."""

    __slots__ = ("_best", "_last", "_sender")

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Forget the active: there is none, or it is this router."""
        self._sender = b""
        self._best = 0
        self._last = 0

    def left(self, sender: bytes) -> None:
        """Forget the active if this sender, which has sent priority 0, was it."""
        if sender == self._sender:
            self.forget()

    def gave_way_to(self, received: ReceivedAdvert) -> None:
        """Store the advertisement of the better active to which this router has lost."""
        self._note(received)

    def may_be_preempted(self, received: ReceivedAdvert, *, own: int, preempt: bool) -> bool:
        """Store an advertisement; return whether a Backup of priority `own` may take over from its sender.

        It may if the sender is worse, and either the Backup preempts or the sender was better before. But if
        the last advertisement came from another active that is not worse than `own`, that one will win
        against the sender (RFC 9568 section 6.4.3), and the Backup does nothing.
        """
        contested = received.sender != self._sender and self._last >= own
        degraded = self._note(received)
        return received.priority < own and not contested and (preempt or degraded)

    def _note(self, received: ReceivedAdvert) -> bool:
        if received.sender != self._sender:
            self._sender = received.sender
            self._best = received.priority
        self._best = max(self._best, received.priority)
        self._last = received.priority
        return received.priority < self._best


class PreemptOffer:
    """What an active without `preempt` does when its own priority falls: it offers the addresses once.

    Its Backup may be one that never takes over from a living active, as keepalived with `nopreempt`. So if no
    router has taken over for an Active_Down_Interval, it sends priority 0 once and keeps the addresses. A
    better router takes over and stays active. A worse one is answered with an advertisement and becomes
    Backup again. If all known routers are worse, no offer is made: it would only make one of them active for
    a moment.
    """

    __slots__ = ("_at", "_best", "_others")

    def __init__(self) -> None:
        self._at: float | None = None
        self._best = 0
        self._others: dict[bytes, int] = {}

    def store(self, received: ReceivedAdvert) -> None:
        """Store the priority of another router; called in every state."""
        self._others.pop(received.sender, None)
        if received.priority:
            self._others[received.sender] = received.priority  # at the end: the first entry is the oldest
        if len(self._others) > OTHERS:
            del self._others[next(iter(self._others))]

    def begin(self, priority: int) -> None:
        """Start again: this router has become active with this priority."""
        self._at = None
        self._best = priority

    def priority_changed(self, priority: int, *, before: int, at: float) -> None:
        """Plan an offer for `at` if our priority has fallen; cancel it if it is back at its best."""
        if priority < before:
            self._at = at
        elif priority >= self._best:
            self._at = None
            self._best = priority

    def due(self, now: float, *, own: int) -> bool:
        """Return whether a router of priority `own` makes its offer now: True only once for each fall."""
        if self._at is None or now < self._at:
            return False
        self._at = None
        return not self._others or max(self._others.values()) > own
