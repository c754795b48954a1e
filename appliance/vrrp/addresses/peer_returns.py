"""Notices, while virtual routers are active, that another router is to be reached again.

After a split the loser may go without a word that reaches the winner: a keepalived that hears a better one is
silent at once. The clients and switches of its side send to it still, and wait until their caches have
expired. So whoever did not answer by ARP or neighbour discovery, and does again, may have been such a loser.
"""

import time
from collections.abc import Callable, Iterable
from typing import Final

from appliance.vrrp.addresses.address_questions import (
    AddressQuestions,
    ArpQuestion,
    AskedAddress,
    AskingInterface,
)

PAUSE: Final = 1.0
"""Seconds between two questions for one router: with an advert of 1s a split takes longer to come about."""

MOST: Final = 8
"""Routers that one virtual router asks for: senders can be made up."""

_SILENCE: Final = 1.5  # pauses without an answer


class PeerReturns:
    """The routers that are asked for, each for all virtual routers that have it as a peer there."""

    def __init__(self, asking: AddressQuestions) -> None:
        self._asking = asking
        self._last: dict[AskedAddress, float] = {}
        self._told: dict[AskedAddress, dict[str, Callable[[], None]]] = {}

    def begin(
        self,
        name: str,
        peers: Iterable[str],
        place: AskingInterface,
        on_return: Callable[[], None],
        now: float,
    ) -> None:
        """Call `on_return` of the virtual router `name` whenever one of these is back, until `end`."""
        self.end(name)
        for peer in tuple(peers)[-MOST:]:
            # Also where it is asked for already: the interface may have another hardware address by now.
            asked = self._asking.begin(
                peer, place, self._answered, now, pause=PAUSE, form=ArpQuestion.REQUEST
            )
            self._last.setdefault(asked, now)
            self._told.setdefault(asked, {})[name] = on_return

    def end(self, name: str) -> None:
        """Tell this one no more; harmless when repeated."""
        for asked in [each for each, told in self._told.items() if name in told]:
            del self._told[asked][name]
            if not self._told[asked]:
                del self._told[asked], self._last[asked]
                self._asking.end(asked, self._answered)

    def _answered(self, _: bytes, asked: AskedAddress) -> None:
        now = time.monotonic()
        last, self._last[asked] = self._last[asked], now
        if now - last > _SILENCE * max(PAUSE, self._asking.round):
            for on_return in tuple(self._told[asked].values()):
                on_return()
