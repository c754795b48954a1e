"""The tracks of shared addresses, each followed by a greenlet of this program; equal ones share one check."""

from collections.abc import Callable, Collection, Iterable

from structlog.typing import FilteringBoundLogger

from appliance.model.paths import Paths
from appliance.model.snapshot.virtual_router import Track
from appliance.net.probing.tls_contexts import TlsContexts
from appliance.net.scripts.script_leftovers import end_leftovers
from appliance.net.tracking.check_of_kind import check_of
from appliance.net.tracking.track_follower import TrackFollower

_SCRIPTS = "announce"  # the mark of our scripts, apart from those of vrrp's tracker


class Tracks:
    """The followed tracks; `on_change` is called after each change of a verdict."""

    def __init__(self, paths: Paths, log: FilteringBoundLogger, *, on_change: Callable[[], None]) -> None:
        self.log = log
        self._paths = paths
        self._scripts = paths.runtime / _SCRIPTS
        self._on_change = on_change
        self._contexts = TlsContexts(self._authority_trouble)
        self._followers: dict[Track, TrackFollower] = {}
        left = end_leftovers(self._scripts)
        if left:
            log.warning("scripts-left", killed=left)

    def follow(self, wanted: Iterable[Track]) -> None:
        """Follow exactly these."""
        tracks = frozenset(wanted)
        for track in self._followers.keys() - tracks:
            self._followers.pop(track).close()
        for track in tracks - self._followers.keys():
            check = check_of(track, paths=self._paths, contexts=self._contexts, scripts=self._scripts)
            self._followers[track] = TrackFollower(
                track, check, on_change=lambda _: self._on_change(), on_bug=self._bug
            )

    def verdict(self, tracks: Collection[Track]) -> tuple[bool | None, str]:
        """Return whether all are up, None while one has no verdict and none is down; and why not."""
        states = [(each, self._followers[each].state) for each in tracks]
        for track, state in states:
            if state is not None and not state.up:
                return False, f"{track.name} is down: {state.detail}"
        for track, state in states:
            if state is None:
                return None, f"{track.name} has no verdict yet"
        return True, ""

    def close(self) -> None:
        """Stop following, and kill what runs."""
        self.follow(())

    def _bug(self, track: Track, error: Exception) -> None:
        self.log.error("track-error", track=track.name, kind=track.kind.value, exc_info=error)

    def _authority_trouble(self, file: str, reason: str) -> None:
        self.log.warning("authority-file", file=file, reason=reason or "usable again")
