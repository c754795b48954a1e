"""What `linger` asks and tells `vrrp`: what is active here, whose active has died, who may preempt."""

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

    `elsewhere` has for each virtual router that this node is backup of who serves it, as heard last.
    """

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._uninformed: frozenset[str] = frozenset()
        self.elsewhere: Mapping[str, str] = {}

    def active(self, routers: Mapping[str, str]) -> frozenset[str] | None:
        """Return which of these addresses are active, given with their routers; None where nobody knows."""
        board = content(self._paths.vrrp_board, vrrp_board.decode)
        if board is None:
            return None
        records = board.routers
        self._uninformed = frozenset(each.name for each in records if each.uninformed)
        self.elsewhere = {each.name: each.peer for each in records if each.state == "backup" and each.peer}
        names = {each.name for each in records if each.state == "active"}
        return frozenset(address for address, name in routers.items() if name in names)

    def inform(self, names: Collection[str]) -> None:
        """Tell `vrrp`, where it waits, that it is known whose connections these virtual routers have."""
        for name in sorted(self._uninformed.intersection(names)):
            with contextlib.suppress(ControlUnavailable):  # its board says so until it has heard it
                ask(
                    self._paths.control(VRRP),
                    Question(command="informed", values={"name": name}),
                    timeout=_ASKED,
                )

    def died(self, addresses: Iterable[str], routers: Mapping[str, str]) -> frozenset[str]:
        """Return which of these addresses have come here because their active was not heard any more."""
        status = status_of(self._paths.control(VRRP), VrrpStatus, timeout=_ASKED)
        dead = {
            each.name
            for each in (status.routers if status else ())
            if each.transitions and each.transitions[-1].cause == Cause.ACTIVE_DOWN.value
        }
        return frozenset(each for each in addresses if routers.get(each) in dead)
