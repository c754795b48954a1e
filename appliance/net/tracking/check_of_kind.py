"""The check of each kind of track (`track:` of a virtual IP)."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from appliance.model.paths import Paths
from appliance.model.snapshot.virtual_router import Track, TrackKind
from appliance.net.probing.tls_contexts import TlsContexts
from appliance.net.tracking.endpoint import http_track, tcp_track
from appliance.net.tracking.file import ExistsTrack, FileTrack, OnlyWhileExists
from appliance.net.tracking.pool import PoolTrack
from appliance.net.tracking.process import ProcessTrack
from appliance.net.tracking.program import program_track
from appliance.net.tracking.script import ScriptTrack
from appliance.net.tracking.track_check import LookResult, TrackCheck


def check_of(track: Track, *, paths: Paths, contexts: TlsContexts, scripts: Path | None = None) -> TrackCheck:
    """Return the check of a track; one with an invalid target is always down, with the reason.

    `scripts` marks the processes of a script (script_leftovers), by default with the runtime directory.
    """
    if track.kind is TrackKind.SCRIPT:
        return _while_exists(track, _script(track, scripts or paths.runtime))
    make = _BY_KIND.get(track.kind)
    if make is None:
        return _Impossible(f"{track.kind} is not tracked here")
    try:
        check = make(track, paths, contexts)
    except ValueError as error:
        return _Impossible(str(error))
    return _while_exists(track, check)


def _while_exists(track: Track, check: TrackCheck) -> TrackCheck:
    return check if track.exists is None else OnlyWhileExists(track.exists, check, timeout=track.timeout)


class _Impossible(TrackCheck):
    """The check of a track that can never be up."""

    def __init__(self, detail: str) -> None:
        self._seen = LookResult(up=False, detail=detail)

    def look(self) -> LookResult:
        return self._seen


def _script(track: Track, mark: Path) -> TrackCheck:
    words = (track.target, *track.arguments)
    return ScriptTrack(words, user=track.user, timeout=track.timeout, runtime=mark)


def _file(track: Track) -> TrackCheck:
    return FileTrack(track.target, weighted=track.weight is not None, timeout=track.timeout)


_Make = Callable[[Track, Paths, TlsContexts], TrackCheck]

# Interfaces are missing: the kernel notifies vrrp itself of their changes (links.Links).
_BY_KIND: Final[dict[TrackKind, _Make]] = {
    TrackKind.HTTP: lambda track, _, contexts: http_track(track, contexts),
    TrackKind.TCP: lambda track, _, contexts: tcp_track(track, contexts),
    TrackKind.PROCESS: lambda track, _, __: ProcessTrack(track.target),
    TrackKind.FILE: lambda track, _, __: _file(track),
    TrackKind.POOL: lambda track, paths, _: PoolTrack(track.target, paths.health_board),
    TrackKind.EXISTS: lambda track, _, __: ExistsTrack(track.target, timeout=track.timeout),
    TrackKind.PROGRAM: lambda track, paths, _: program_track(track.target, paths, timeout=track.timeout),
}
