"""Notices, while virtual routers are active, that a peer answers by ARP or neighbour discovery again.

After a split brain the losing router may stop without an advert that reaches the winner: keepalived falls
silent as soon as it receives a higher priority. Clients and switches on its side still send to the loser
until their caches expire. So the winner announces its addresses again when a peer that did not answer starts
to answer.
"""

from collections.abc import Callable, Iterable
from typing import Final

from appliance.vrrp.addresses.neighbour_queries import (
    ArpQuestion,
    AskedAddress,
    AskingInterface,
    NeighbourQueries,
)

PAUSE: Final = 1.0
"""Seconds between two questions for one peer: with adverts every 1 s a split brain takes longer to begin."""

MOST: Final = 8
"""Most peers of one virtual router that are asked for: the senders of adverts can be forged."""

_SILENCE: Final = 1.5  # pauses without an answer after which a peer counts as unreachable


Returned = Callable[[float], None]
"""Called with the time at which a peer answered again."""


class PeerReturns:
    """The peers that are asked for, each once even if it is a peer of many virtual routers."""

    def __init__(self, asking: NeighbourQueries) -> None:
        self._asking = asking
        self._answered_at: dict[AskedAddress, float] = {}
        self._callbacks: dict[AskedAddress, dict[str, Returned]] = {}

    def begin(
        self,
        name: str,
        peers: Iterable[str],
        via: AskingInterface,
        on_return: Returned,
        now: float,
    ) -> None:
        """Call `on_return` for the virtual router `name` whenever a peer answers again, until `end`."""
        self.end(name)
        for peer in tuple(peers)[-MOST:]:
            # Also for a peer that is already asked for: our interface may have another MAC by now.
            asked = self._asking.begin(peer, via, self._answered, now, pause=PAUSE, form=ArpQuestion.REQUEST)
            self._answered_at.setdefault(asked, now)
            self._callbacks.setdefault(asked, {})[name] = on_return

    def end(self, name: str) -> None:
        """Stop calling for the virtual router `name`; harmless when repeated."""
        for asked in [each for each, callbacks in self._callbacks.items() if name in callbacks]:
            del self._callbacks[asked][name]
            if not self._callbacks[asked]:
                del self._callbacks[asked], self._answered_at[asked]
                self._asking.end(asked, self._answered)

    def _answered(self, _: bytes, asked: AskedAddress, now: float) -> None:
        last, self._answered_at[asked] = self._answered_at[asked], now
        if now - last > _SILENCE * max(PAUSE, self._asking.round):
            for on_return in tuple(self._callbacks[asked].values()):
                on_return(now)
