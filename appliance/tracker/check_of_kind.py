"""Which check belongs to which kind of track (`track:` of a virtual IP)."""

from collections.abc import Callable
from typing import Final

import gevent

from appliance.model.paths import Paths
from appliance.model.snapshot.virtual_router import Track, TrackKind
from appliance.net.probing.tls_contexts import TlsContexts
from appliance.net.tracking.pool import PoolTrack
from appliance.net.tracking.program import program_track
from appliance.net.tracking.track_check import LookResult, TrackCheck
from appliance.tracker.exists import ExistsTrack, OnlyWhileExists
from appliance.tracker.file import FileTrack
from appliance.tracker.http import http_track
from appliance.tracker.process import ProcessTrack
from appliance.tracker.script import ScriptTrack
from appliance.tracker.tcp import tcp_track


def check_of(track: Track, *, paths: Paths, contexts: TlsContexts) -> TrackCheck:
    """Return the check of a track; one whose target cannot be understood is always down, with the reason."""
    make = _BY_KIND.get(track.kind)
    if make is None:
        return _Impossible(f"{track.kind} is not tracked here")
    try:
        check = make(track, paths, contexts)
    except ValueError as error:
        return _Impossible(str(error))
    return check if track.exists is None else OnlyWhileExists(track.exists, check, timeout=track.timeout)


class _Impossible:
    """The check of a track that can never be up."""

    def __init__(self, detail: str) -> None:
        self._seen = LookResult(up=False, detail=detail)

    def look(self) -> LookResult:
        return self._seen

    def wait(self, seconds: float) -> None:
        gevent.sleep(seconds)

    def close(self) -> None:
        """Do nothing: there is nothing to free."""


def _script(track: Track, paths: Paths) -> TrackCheck:
    words = (track.target, *track.arguments)
    return ScriptTrack(words, user=track.user, timeout=track.timeout, runtime=paths.runtime)


def _file(track: Track) -> TrackCheck:
    return FileTrack(track.target, weighted=track.weight is not None, timeout=track.timeout)


_Make = Callable[[Track, Paths, TlsContexts], TrackCheck]

# Interfaces are missing: the kernel notifies vrrp itself of their changes (links.Links).
_BY_KIND: Final[dict[TrackKind, _Make]] = {
    TrackKind.HTTP: lambda track, _, contexts: http_track(track, contexts),
    TrackKind.TCP: lambda track, _, contexts: tcp_track(track, contexts),
    TrackKind.SCRIPT: lambda track, paths, _: _script(track, paths),
    TrackKind.PROCESS: lambda track, _, __: ProcessTrack(track.target),
    TrackKind.FILE: lambda track, _, __: _file(track),
    TrackKind.POOL: lambda track, paths, _: PoolTrack(track.target, paths.health_board),
    TrackKind.EXISTS: lambda track, _, __: ExistsTrack(track.target, timeout=track.timeout),
    TrackKind.PROGRAM: lambda track, paths, _: program_track(track.target, paths, timeout=track.timeout),
}
