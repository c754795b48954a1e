"""The state of one shared IP at this node, and what changes it.

=========  ================  ==========  ====================================================
state      address on `lo`   announced   until
=========  ================  ==========  ====================================================
STARTING   yes               no          every track is up, and connections of other nodes are
                                         forwarded to them: a node that joins resets none
SERVING    yes               yes         a track is down, or the node leaves
DRAINED    yes               as drained  the tracks are up again; after `drain`, a node that
                                         leaves withdraws it
WITHDRAWN  yes               no          as STARTING
=========  ================  ==========  ====================================================

The address stays in every state: connections that routers have moved to other nodes are forwarded here. A
node without verdicts yet keeps what an earlier run announced. Each change of the announcing nodes makes
routers redistribute connections, so an address that failed returns after a pause that doubles each time.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from appliance.model.snapshot.shared_ip import Unhealthy

PAUSE: Final = 3.0
"""Seconds after a failure before an address is served again; each further one doubles them."""

LONGEST_PAUSE: Final = 60.0

FORGOTTEN: Final = 300.0
"""Seconds without a failure after which earlier ones do not count."""


LEAVES: Final = "this node leaves its addresses to others"
"""The reason of a state that an operator or a stop has asked for."""


class SharedState(StrEnum):
    """The states, in the words of `status`, events and metrics."""

    STARTING = "starting"
    SERVING = "serving"
    DRAINED = "drained"
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What decides now. `tracks` is whether all are up, None while one has no verdict; `why` says which.

    `unready` is why connections of other nodes would end here, "" if they would not. `leaves`: this node
    leaves its addresses to others.
    """

    tracks: bool | None
    why: str = ""
    unready: str = ""
    leaves: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Announced:
    """The state of one shared IP: since when (monotonic) and why, and its recent times of failures."""

    state: SharedState
    since: float
    reason: str
    failures: tuple[float, ...] = ()

    @property
    def is_announced(self) -> bool:
        """Whether routers learn the address from this node."""
        return self.state in (SharedState.SERVING, SharedState.DRAINED)

    @property
    def pause(self) -> float:
        """Seconds after the last failure before the address is served again."""
        count = len(self.failures)
        return min(PAUSE * 2 ** (count - 1), LONGEST_PAUSE) if count else 0.0


def begun(now: float) -> Announced:
    """Return the state of an address that nothing is known of."""
    return Announced(state=SharedState.STARTING, since=now, reason="it starts")


def adopted(state: SharedState, now: float) -> Announced:
    """Return the state of an address that an earlier run announced."""
    return Announced(state=state, since=now, reason="as an earlier run left it")


def after(before: Announced, gate: Gate, *, unhealthy: Unhealthy, drain: float, now: float) -> Announced:
    """Return the state of an address at `now`; a node that leaves withdraws it after `drain` seconds."""
    before = replace(before, failures=tuple(each for each in before.failures if now - each < FORGOTTEN))
    if gate.leaves:
        return _leaving(before, drain, now)
    if gate.tracks is None:
        return before if before.is_announced else _changed(before, SharedState.STARTING, gate.why, now)
    if not gate.tracks:
        return _failed(before, gate.why, unhealthy, now)
    return _healthy(before, gate, now)


def due(announced: Announced, gate: Gate, *, drain: float) -> float | None:
    """Return when `after` may have another result though nothing has changed, None for never."""
    if gate.leaves and announced.state is SharedState.DRAINED:
        return announced.since + drain
    if gate.tracks and not gate.unready and announced.state is not SharedState.SERVING:
        return max(announced.failures, default=announced.since) + announced.pause
    return None


def _leaving(before: Announced, drain: float, now: float) -> Announced:
    if before.state is SharedState.SERVING:
        return _changed(before, SharedState.DRAINED, LEAVES, now)
    if before.state is SharedState.DRAINED and before.reason == LEAVES and now - before.since < drain:
        return before
    if before.state is SharedState.DRAINED and before.reason != LEAVES:
        return replace(before, since=now, reason=LEAVES)
    return _changed(before, SharedState.WITHDRAWN, LEAVES, now)


def _failed(before: Announced, why: str, unhealthy: Unhealthy, now: float) -> Announced:
    if before.state is SharedState.SERVING:
        before = replace(before, failures=(*before.failures, now))
    last_resort = unhealthy is Unhealthy.LAST_RESORT
    return _changed(before, SharedState.DRAINED if last_resort else SharedState.WITHDRAWN, why, now)


def _healthy(before: Announced, gate: Gate, now: float) -> Announced:
    if before.state is SharedState.SERVING:
        return _changed(before, SharedState.SERVING, "all tracks are up", now)
    if gate.unready:
        return before if before.is_announced else _changed(before, SharedState.STARTING, gate.unready, now)
    if before.failures and now - before.failures[-1] < before.pause:
        return replace(before, reason=f"it failed {len(before.failures)} times: it waits {before.pause:g}s")
    return _changed(before, SharedState.SERVING, "all tracks are up", now)


def _changed(before: Announced, state: SharedState, reason: str, now: float) -> Announced:
    if before.state is state:
        return before if before.reason == reason else replace(before, reason=reason)
    return replace(before, state=state, since=now, reason=reason)
