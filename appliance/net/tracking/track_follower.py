"""Follows tracks: checks at intervals, applies rise and fall, and reports changes."""

import time
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import gevent
from structlog.typing import FilteringBoundLogger

from appliance.core.tracking.rise_and_fall import RiseAndFall
from appliance.model.paths import Paths
from appliance.model.snapshot.virtual_router import Track
from appliance.net.probing.tls_contexts import TlsContexts
from appliance.net.tracking.check_of_kind import check_of
from appliance.net.tracking.track_check import LookResult, TrackCheck, TrackUnknown

_BREATH: Final = 0.01
"""Minimum seconds between two checks, however long they take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackState:
    """The state of a track; `at` is when it began, monotonic seconds."""

    up: bool
    value: int
    detail: str
    at: float


class TrackFollower:
    """One track with its own greenlet, so that a hanging one delays no other.

    Checks never overlap: the next one starts an interval after the start of the last, or at its end.
    `on_change` is called when verdict, value or detail change, `on_bug` if a check raises an unexpected
    exception: then the track is down, because it is no longer watched.
    """

    def __init__(
        self,
        track: Track,
        check: TrackCheck,
        *,
        on_change: Callable[["TrackFollower"], None],
        on_bug: Callable[[Track, Exception], None],
    ) -> None:
        self.track = track
        self.state: TrackState | None = None
        self._check = check
        self._on_change = on_change
        self._on_bug = on_bug
        self._rise = RiseAndFall(rise=track.rise, fall=track.fall)
        self._loop = gevent.spawn(self._follow)

    def close(self) -> None:
        """Stop checking, and kill processes of a running check."""
        self._loop.kill(block=False)
        self._check.close()

    def _follow(self) -> None:
        while True:
            started = time.monotonic()
            seen = self._look()
            now = time.monotonic()
            if seen is not None:
                self._conclude(seen, now)
            self._check.wait(max(started + self.track.interval - now, _BREATH))

    def _look(self) -> LookResult | None:
        """Return the result of a check; None keeps the state. A failed first check is down."""
        try:
            return self._check.look()
        except TrackUnknown as error:
            return None if self.state else LookResult(up=False, detail=str(error))
        except Exception as error:  # noqa: BLE001  # a bug in one kind must not leave its verdict up for ever
            self._on_bug(self.track, error)
            return LookResult(up=False, detail=f"{type(error).__name__}: {error}")

    def _conclude(self, seen: LookResult, now: float) -> None:
        up, last = self._rise.result(seen.up), self.state
        detail = self._with_count(seen) if seen.up is not up else seen.detail
        # A failed check has no number: until it changes the state, the last number counts.
        value = last.value if last and up and not seen.up else seen.value
        if last and (last.up, last.value, last.detail) == (up, value, detail):
            return
        self.state = TrackState(up=up, value=value, detail=detail, at=now)
        self._on_change(self)

    def _with_count(self, seen: LookResult) -> str:
        """Return the detail of a result that has not changed the state yet: `1 of 3 bad: ...`."""
        rise = self._rise
        wanted, what = (rise.rise, "good") if seen.up else (rise.fall, "bad")
        return f"{rise.streak} of {wanted} {what}: {seen.detail}"


class FollowedTracks:
    """The tracks that a program follows, each with a greenlet; equal ones share one check."""

    def __init__(
        self,
        paths: Paths,
        log: FilteringBoundLogger,
        *,
        on_change: Callable[[TrackFollower], None],
        scripts: Path | None = None,
    ) -> None:
        self.log = log
        self.followers: dict[Track, TrackFollower] = {}
        self._paths, self._on_change, self._scripts = paths, on_change, scripts
        self._contexts = TlsContexts(self._authority_trouble)

    def follow(self, wanted: AbstractSet[Track]) -> None:
        """Follow exactly these; kill running checks of others."""
        for track in self.followers.keys() - wanted:
            self.followers.pop(track).close()
        for track in wanted - self.followers.keys():
            check = check_of(track, paths=self._paths, contexts=self._contexts, scripts=self._scripts)
            self.followers[track] = TrackFollower(
                track, check, on_change=self._on_change, on_bug=self._log_bug
            )

    def _log_bug(self, track: Track, error: Exception) -> None:
        self.log.error("track-error", track=track.name, kind=track.kind.value, exc_info=error)

    def _authority_trouble(self, file: str, reason: str) -> None:
        self.log.warning("authority-file", file=file, reason=reason or "usable again")
