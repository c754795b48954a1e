"""Batches of sessions, held still while they are offered to another process.

Two may want the same sessions: a newer generation, and another node. Whoever has one under way has it alone.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from appliance.net.control.control_client import ControlUnavailable
from appliance.wire.lines.control import ControlError
from appliance.wire.lines.moving_sessions import MOST_SESSIONS, NO_ROOM
from appliance.worker.relay.all_sessions import Traffic
from appliance.worker.relay.session import moving
from appliance.worker.relay.session.session import Session
from appliance.worker.session_transfer import SessionTransfer

_LOOKS: Final = 1000
"""Sessions examined before the traffic has its turn."""

_MOST_DESCRIPTORS: Final = 200
_MOST_BYTES: Final = 256 << 10
"""Most bytes in one batch that peers have not taken: a line may be 1 MiB, and encoding adds a third."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """What became of a batch: those `refused`, by number, with why; `for_good` unless room may be made.

    `unanswered` is why there is no answer, empty if there is one; then `settling` are sessions that may be
    taken once they are open: a former release cannot take others.
    """

    refused: Mapping[int, str] = field(default_factory=dict)
    settling: frozenset[int] = frozenset()
    unanswered: str = ""

    @property
    def for_good(self) -> frozenset[int]:
        """Return the numbers of those that need not be offered again."""
        return frozenset(number for number, why in self.refused.items() if why != NO_ROOM)


class SessionBatches:
    """The sessions of a worker that are under way."""

    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic
        self._under_way: set[int] = set()

    def take(
        self, left: list[Session], fits: Callable[[Session], bool], *, most: int = MOST_SESSIONS
    ) -> list[Session]:
        """Take sessions that fit from the end of the list, one message full, out of the next thousand."""
        found, descriptors, held = list[Session](), 0, 0
        for _ in range(min(_LOOKS, len(left))):
            each = left[-1]
            if each.number not in self._under_way and fits(each):
                descriptors += len(moving.descriptors(each))
                held += moving.held_in_memory(each)
                if found and (descriptors > _MOST_DESCRIPTORS or held > _MOST_BYTES):
                    break
                found.append(each)
            left.pop()
            if len(found) == most:
                break
        return found

    def offer(self, batch: list[Session], way: SessionTransfer) -> Tried:
        """Offer a batch, and continue with what is refused."""
        numbers = {each.number for each in batch}
        self._under_way |= numbers
        tried = Tried()
        for each in batch:
            moving.hold_still(each)
        try:
            tried = Tried(refused=way.give(batch))
        except ControlUnavailable as error:
            tried = Tried(unanswered=str(error))
        except ControlError as error:
            settling = frozenset(each.number for each in batch if moving.waits(each))
            tried = Tried(settling=settling, unanswered=str(error))
        except Exception as error:  # noqa: BLE001  # the boundary: a bug costs this try, and not the others
            self._traffic.fault(error)
            tried = Tried(unanswered=repr(error))
        finally:
            self._under_way -= numbers
            if tried.unanswered:
                way.close()  # the other process drops what it was offered and not given
            for each in batch:
                moving.go_on(each)  # except for those that have left
        return tried
