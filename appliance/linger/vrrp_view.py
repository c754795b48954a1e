"""What `linger` exchanges with `vrrp`: who is active here, whose active has died, who may preempt."""

import contextlib
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from appliance.core.vrrp.election_messages import Cause
from appliance.model.paths import Paths
from appliance.model.program_names import VRRP
from appliance.net.boards.board_content import content
from appliance.net.control.control_client import ControlUnavailable, ask, status_of
from appliance.wire.boards import vrrp_board
from appliance.wire.lines.control import Question
from appliance.wire.lines.vrrp_status import VrrpStatus

_ASKED: Final = 1.0  # seconds for an answer


class VrrpView:
    """The board and the control socket of `vrrp`.

    `elsewhere` maps each virtual router that this node is backup of to the node last known to serve it.
    """

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._uninformed: frozenset[str] = frozenset()
        self.elsewhere: Mapping[str, str] = {}

    def active(self, routers: Mapping[str, str]) -> frozenset[str] | None:
        """Return which of these addresses, given with their routers, are active; None if unknown."""
        board = content(self._paths.vrrp_board, vrrp_board.decode)
        if board is None:
            return None
        records = board.routers
        self._uninformed = frozenset(each.name for each in records if each.uninformed)
        self.elsewhere = {each.name: each.peer for each in records if each.state == "backup" and each.peer}
        names = {each.name for each in records if each.state == "active"}
        return frozenset(address for address, name in routers.items() if name in names)

    def inform(self, names: Collection[str]) -> None:
        """Report to a waiting `vrrp` that the owners of these virtual routers' connections are known."""
        for name in sorted(self._uninformed.intersection(names)):
            with contextlib.suppress(ControlUnavailable):  # its board shows that until it gets the report
                ask(
                    self._paths.control(VRRP),
                    Question(command="informed", values={"name": name}),
                    timeout=_ASKED,
                )

    def died(self, addresses: Iterable[str], routers: Mapping[str, str]) -> frozenset[str]:
        """Return which of these addresses came here because their active fell silent."""
        status = status_of(self._paths.control(VRRP), VrrpStatus, timeout=_ASKED)
        dead = {
            each.name
            for each in (status.routers if status else ())
            if each.transitions and each.transitions[-1].cause == Cause.ACTIVE_DOWN.value
        }
        return frozenset(each for each in addresses if routers.get(each) in dead)
