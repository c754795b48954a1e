"""The tracks of shared addresses, each followed by a greenlet of this program; equal ones share one check."""

from collections.abc import Callable, Collection

from structlog.typing import FilteringBoundLogger

from appliance.model.paths import Paths
from appliance.model.snapshot.virtual_router import Track
from appliance.net.scripts.script_leftovers import end_leftovers
from appliance.net.tracking.track_follower import FollowedTracks

_SCRIPTS = "announce"  # the mark of our scripts, apart from those of vrrp's tracker


class Tracks(FollowedTracks):
    """The followed tracks; `on_change` is called after each change of a verdict."""

    def __init__(self, paths: Paths, log: FilteringBoundLogger, *, on_change: Callable[[], None]) -> None:
        scripts = paths.runtime / _SCRIPTS
        super().__init__(paths, log, on_change=lambda _: on_change(), scripts=scripts)
        left = end_leftovers(scripts)
        if left:
            log.warning("scripts-left", killed=left)

    def verdict(self, tracks: Collection[Track]) -> tuple[bool | None, str]:
        """Return whether all are up, None while one has no verdict and none is down; and why not."""
        states = [(each, self.followers[each].state) for each in tracks]
        for track, state in states:
            if state is not None and not state.up:
                return False, f"{track.name} is down: {state.detail}"
        for track, state in states:
            if state is None:
                return None, f"{track.name} has no verdict yet"
        return True, ""

    def close(self) -> None:
        """Stop following, and kill what runs."""
        self.follow(frozenset())
