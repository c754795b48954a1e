"""What `linger` exchanges with `vrrp`: who is active here, whose active has died, who may preempt."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from appliance.core.vrrp.election_messages import Cause
from appliance.model.paths import Paths
from appliance.model.program_names import LINGER, VRRP
from appliance.net.boards.board_layout import BoardError
from appliance.net.boards.board_reader import BoardReader
from appliance.net.control.control_client import status_of
from appliance.net.control.informing import inform
from appliance.wire.boards import vrrp_board
from appliance.wire.boards.health_board import BoardFormatError
from appliance.wire.boards.vrrp_board import RouterRecord
from appliance.wire.lines.vrrp_status import VrrpStatus

_ASKED: Final = 1.0  # seconds for an answer


class VrrpView:
    """Board and control socket of `vrrp`; `elsewhere` has the last server of each router we are backup of."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._board: BoardReader | None = None
        self._seen: tuple[int, Sequence[RouterRecord] | None] | None = None
        self._uninformed: frozenset[str] = frozenset()
        self.elsewhere: Mapping[str, str] = {}

    def active(self, routers: Mapping[str, str]) -> frozenset[str] | None:
        """Return which of these addresses, given with their routers, are active; None if unknown."""
        if not routers:
            self._uninformed, self.elsewhere = frozenset(), {}
            return frozenset()
        records = self._records()
        if records is None:
            return None
        self._uninformed = frozenset(each.name for each in records if each.uninformed)
        self.elsewhere = {each.name: each.peer for each in records if each.state == "backup" and each.peer}
        names = {each.name for each in records if each.state == "active"}
        return frozenset(address for address, name in routers.items() if name in names)

    def has_changed(self) -> bool:
        """Return whether the board has more than `active` has seen, or there is none."""
        try:
            if self._board is None:
                return True
            if self._board.follow():
                self._seen = None
        except BoardError:
            self.close()
            return True
        return self._seen is None or self._board.sequence != self._seen[0]

    def close(self) -> None:
        """Unmap the board."""
        if self._board is not None:
            self._board.close()
        self._board = self._seen = None

    def _records(self) -> Sequence[RouterRecord] | None:
        """Return what `vrrp` has published last, decoded once; None without a board."""
        try:
            if self.has_changed():
                self._board = self._board or BoardReader(self._paths.vrrp_board)
                sequence, payload = self._board.sequence, self._board.read()
                self._seen = sequence, vrrp_board.decode(payload).routers if payload else None
        except (BoardError, BoardFormatError):
            self.close()
            return None
        return self._seen[1] if self._seen else None

    def inform(self, names: Collection[str]) -> None:
        """Report to a waiting `vrrp` that the owners of these virtual routers' connections are known."""
        inform(self._paths, sorted(self._uninformed.intersection(names)), by=LINGER)

    def died(self, addresses: Iterable[str], routers: Mapping[str, str]) -> frozenset[str]:
        """Return which of these addresses came here because their active fell silent."""
        status = status_of(self._paths.control(VRRP), VrrpStatus, timeout=_ASKED)
        dead = {
            each.name
            for each in (status.routers if status else ())
            if each.transitions and each.transitions[-1].cause == Cause.ACTIVE_DOWN.value
        }
        return frozenset(each for each in addresses if routers.get(each) in dead)
