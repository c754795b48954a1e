"""Tells the other nodes what this one runs and which servers it finds up, and compares that with theirs.

The reports carry it: `send` sends what this node reports, and `receive` takes what others report.
"""

import time
from collections.abc import Callable, Mapping
from typing import Final

import gevent
from structlog.typing import FilteringBoundLogger

from appliance import __version__
from appliance.core.linger.judged_servers import (
    WatchedServer,
    judged_servers,
    told_servers,
    watched_servers,
)
from appliance.core.linger.other_nodes import Difference, DifferenceChange, JudgedHere, OtherNodes, ThisNode
from appliance.core.linger.this_node import configuration, page_of
from appliance.model.operator_events import OperatorEvent, Publish
from appliance.model.paths import Paths
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.boards.board_content import BoardFollower
from appliance.net.control.control_client import status_of
from appliance.wire.boards import health_board
from appliance.wire.lines.linger_status import OtherNode
from appliance.wire.lines.reload_status import ReloadStatus
from appliance.wire.linger_node import Condition, NodeFacts, marks

_PAUSE: Final = 2.0  # seconds from one report to the next
_COST: Final = 0.02
"""Largest share of the time for reading verdicts: those of very many servers are read more rarely."""

_ASKED: Final = 1.0  # seconds for an answer

FRESH: Final = 60.0
"""Seconds for which this node is in the condition that `stats` has reported."""


class NodeExchange:
    """What this node and the others run. `send` sends it to all of them; `on_fault` gets a bug."""

    def __init__(
        self,
        paths: Paths,
        *,
        log: Callable[[], FilteringBoundLogger],
        publish: Publish,
        send: Callable[[NodeFacts], None],
        on_fault: Callable[[BaseException | None], None],
    ) -> None:
        self._others = OtherNodes()
        self._reload = paths.control("reload")
        self._log = log
        self._publish = publish
        self._send = send
        self._board = BoardFollower(paths.health_board, health_board.decode)
        self._snapshot: Snapshot | None = None
        self._watched: Mapping[tuple[str, str], WatchedServer] = {}
        self._condition, self._condition_at = Condition.UNKNOWN, float("-inf")
        self._name = self._common = ""
        self._judged: dict[bytes, JudgedHere] = {}
        self._read_at = float("-inf")
        self._loop = gevent.spawn(self._exchange_always)
        self._loop.link_exception(lambda ended: on_fault(ended.exception))

    def apply(self, snapshot: Snapshot) -> None:
        """Change to what a snapshot configures."""
        self._snapshot = snapshot if snapshot.linger else None
        self._watched = watched_servers(snapshot.pools) if snapshot.linger else {}
        self._board.forget()

    def receive(self, node: str, facts: NodeFacts) -> None:
        """Store the report of the node at an address about itself."""
        self._others.receive(node, facts, now=time.monotonic())

    def report(self, condition: Condition) -> None:
        """Take in which condition this node is."""
        self._condition, self._condition_at = condition, time.monotonic()

    def status(self) -> tuple[OtherNode, ...]:
        """Return the other nodes."""
        return self._others.nodes(now=time.monotonic(), wall=time.time()) if self._snapshot else ()

    def close(self) -> None:
        """Stop reporting."""
        self._loop.kill()
        self._board.close()

    def _exchange_always(self) -> None:
        while True:
            if self._snapshot is not None:
                self._read_verdicts(time.monotonic())
                self._exchange(self._snapshot)
            gevent.sleep(_PAUSE)

    def _read_verdicts(self, now: float) -> None:
        if now < self._read_at:
            return
        begun = time.thread_time()
        board = self._board.changed()
        if board is not None:
            self._judged = judged_servers(self._watched, board.servers)
        self._read_at = now + (time.thread_time() - begun) / _COST

    def _exchange(self, snapshot: Snapshot) -> None:
        reload = status_of(self._reload, ReloadStatus, timeout=_ASKED) or ReloadStatus()
        # A `reload` that has just started has not read the files yet: what it said before still holds.
        self._name, self._common = reload.node or self._name, reload.common or self._common
        here = ThisNode(
            name=self._name,
            configuration=configuration(self._common),
            marks=marks((*snapshot.virtual_addresses, *snapshot.shared_addresses)),
            servers=self._judged,
        )
        self._send(
            NodeFacts(
                name=here.name,
                release=__version__,
                configuration=here.configuration,
                condition=self._present_condition(),
                page=page_of(snapshot.stats),
                marks=here.marks,
                servers=told_servers(here.servers),
            )
        )
        self._compare(here)

    def _present_condition(self) -> Condition:
        known = time.monotonic() - self._condition_at < FRESH
        return self._condition if known else Condition.UNKNOWN

    def _compare(self, here: ThisNode) -> None:
        for change in self._others.look(here, now=time.monotonic()):
            self._log_change(change)
            self._publish(
                OperatorEvent(when=time.time(), kind=change.event, subject=change.node, detail=change.detail)
            )

    def _log_change(self, change: DifferenceChange) -> None:
        log = self._log()
        if not change.detail:
            log.info("nodes-agree", node=change.node, about=change.about.name.lower())
        elif change.about is Difference.CONFIGURATION:
            log.warning("configuration-differs", node=change.node, detail=change.detail)
        else:
            log.warning("verdicts-differ", node=change.node, detail=change.detail)
