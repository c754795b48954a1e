"""The check of each kind of track (`track:` of a virtual IP)."""

import os
import re
import stat
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Generic, TypeVar
from urllib.parse import SplitResult, urlsplit

import gevent
from gevent.event import AsyncResult

from appliance.model.config.values.addresses import server_endpoint
from appliance.model.paths import Paths
from appliance.model.snapshot.pools import CheckType
from appliance.model.snapshot.virtual_router import Track, TrackKind
from appliance.net.loop import thread_pool
from appliance.net.probing.tls_contexts import TlsContexts
from appliance.net.scripts.account import Account, UnknownUserError, account
from appliance.net.scripts.command import Command
from appliance.net.tracking.endpoint import EndpointTrack, probe_check
from appliance.net.tracking.pool import PoolTrack
from appliance.net.tracking.process import ProcessTrack
from appliance.net.tracking.program import program_track
from appliance.net.tracking.track_check import LookResult, TrackCheck, TrackUnknown, raise_if_stalled

_Found = TypeVar("_Found")

_LONGEST: Final = 64
_NUMBER: Final = re.compile(rb"[+-]?[0-9]{1,10}")
_SHOWN: Final = 24


class ThreadAnswer(Generic[_Found]):
    """Asks repeatedly; if a question hangs, the next `get` waits for the same one."""

    def __init__(self, ask: Callable[[str], _Found], path: str, *, timeout: float) -> None:
        self.timeout: Final = timeout
        self._ask = ask
        self._path = path
        self._asked: AsyncResult | None = None

    def get(self) -> _Found | None:
        """Return the answer, None without one within the time-out; raises TrackUnknown."""
        started = time.monotonic()
        try:
            asked = self._asked = self._asked or thread_pool.begin(self._ask, self._path)
        except OSError as error:
            raise TrackUnknown(f"it cannot be read: {error.strerror}") from error
        try:
            found: _Found = asked.get(timeout=self.timeout)
        except gevent.Timeout:
            raise_if_stalled(started, self.timeout)
            return None
        finally:
            if asked.ready():
                self._asked = None
        return found


class FileTrack(TrackCheck):
    """The check of the number in a file, as keepalived's track_file does it.

    An empty or missing file is 0. Without a weight any number but 0 is a failure; with one the track is
    always up, and the number is the change of the priority. The file is read in a thread: if the file system
    hangs, the track is down.
    """

    def __init__(self, path: str, *, weighted: bool, timeout: float) -> None:
        self._weighted = weighted
        self._content = ThreadAnswer(_read, path, timeout=timeout)

    def look(self) -> LookResult:
        """Read the file and return the result; raises TrackUnknown."""
        found = self._content.get()
        if found is None:
            return LookResult(up=False, detail=f"not read within {self._content.timeout:g} s")
        if isinstance(found, OSError):
            return LookResult(up=False, detail=f"cannot be read: {found.strerror}")
        return self._judge(found.strip())

    def _judge(self, text: bytes) -> LookResult:
        if not text:
            return LookResult(up=True, detail="no number, which is 0")
        if not _NUMBER.fullmatch(text):
            return LookResult(up=False, detail=f"not a number: {text[:_SHOWN].decode(errors='replace')!r}")
        value = int(text)
        return LookResult(up=self._weighted or value == 0, detail=f"the number is {value}", value=value)


def _read(path: str) -> bytes | OSError:
    """Return the file's text, b"" without a file, or the error: gevent would print an exception."""
    try:
        return _text(path)
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except OSError as error:
        return error


def _text(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(0, "not a regular file")
        return os.read(descriptor, _LONGEST)
    finally:
        os.close(descriptor)


class ExistsTrack(TrackCheck):
    """The check whether a path exists, as `[ -e PATH ]` in a check script of keepalived does it.

    It may be of any kind; a link whose target is missing does not exist. A thread checks it: if the file
    system hangs, the track is down.
    """

    def __init__(self, path: str, *, timeout: float) -> None:
        self._path = path
        self._answer = ThreadAnswer(_objection, path, timeout=timeout)

    def look(self) -> LookResult:
        """Check the path, and return the result; raises TrackUnknown."""
        objection = self._answer.get()
        if objection is None:
            return LookResult(up=False, detail=f"{self._path}: no answer within {self._answer.timeout:g} s")
        return LookResult(up=not objection, detail=f"{self._path}: {objection or 'exists'}")


class OnlyWhileExists(TrackCheck):
    """Another check that runs and counts only while a path exists."""

    def __init__(self, path: str, check: TrackCheck, *, timeout: float) -> None:
        self._exists: Final = ExistsTrack(path, timeout=timeout)
        self._check = check

    def look(self) -> LookResult:
        """Check the path, then run the other check; raises TrackUnknown."""
        found = self._exists.look()
        return self._check.look() if found.up else found

    def wait(self, seconds: float) -> None:
        """Wait as the other check does."""
        self._check.wait(seconds)

    def close(self) -> None:
        """Free everything."""
        self._check.close()


def _objection(path: str) -> str:
    """Return why a path does not exist, "" if it does: gevent would print an exception."""
    try:
        os.stat(path)  # noqa: PTH116  # by name: a Path says ValueError of one with a zero byte only later
    except (OSError, ValueError) as error:
        return error.strerror or str(error) if isinstance(error, OSError) else str(error)
    return ""


class ScriptTrack(TrackCheck):
    """The check of a script: one run at a time. Background processes of a run are killed with it."""

    def __init__(
        self, words: Sequence[str], *, user: str | None, timeout: float, runtime: Path | None = None
    ) -> None:
        self._words = tuple(words)
        self._user = user
        self._timeout = timeout
        self._runtime = runtime
        self._account: Account | None = None
        self._running: Command | None = None
        # A check for HAProxy always fails where we replace it, for no obvious reason.
        named = any("haproxy" in each.lower() for each in words)
        self._hint = "; it names HAProxy, and `program` asks for our proxy" if named else ""

    def look(self) -> LookResult:
        """Run the script and return the result; raises TrackUnknown."""
        last = self._running
        if last is not None and not last.ended.wait(self._timeout):
            return LookResult(up=False, detail=f"process {last.pid} of an earlier run cannot be killed")
        try:
            who = self._account = self._account or account(self._user, timeout=self._timeout)
            self._running = Command(self._words, who, sweep=True, runtime=self._runtime)
        except UnknownUserError as error:
            return LookResult(up=False, detail=str(error))
        except OSError as error:
            raise TrackUnknown(f"no process can be started: {error.strerror}") from error
        ending = self._running.wait(self._timeout)
        return LookResult(up=ending.passed, detail=ending.detail + ("" if ending.passed else self._hint))

    def close(self) -> None:
        """Kill what runs."""
        if self._running is not None:
            self._running.kill()


_PORTS: Final = {CheckType.HTTP: 80, CheckType.HTTPS: 443}


def http_track(track: Track, contexts: TlsContexts) -> EndpointTrack:
    """Return the check of a track whose target is a URL; raises ValueError.

    With a CA file the certificate must also be for the URL's host, a name or an address.
    """
    url = urlsplit(track.target)
    if url.scheme not in {"http", "https"} or not url.hostname:
        raise ValueError(f"{track.target!r} is no http or https URL")
    kind = CheckType(url.scheme)
    port = url.port or _PORTS[kind]
    sni = url.hostname if kind is CheckType.HTTPS else None
    check = probe_check(track, kind, path=_path(url), host=_host(url, kind), sni=sni)
    return EndpointTrack(check, url.hostname, port, contexts)


def _path(url: SplitResult) -> str:
    path = url.path or "/"
    return f"{path}?{url.query}" if url.query else path


def _host(url: SplitResult, kind: CheckType) -> str:
    """Return the Host header: with the port unless it is the scheme's default (RFC 9110 section 7.2)."""
    name = f"[{url.hostname}]" if ":" in (url.hostname or "") else url.hostname or ""
    return name if url.port in {None, _PORTS[kind]} else f"{name}:{url.port}"


def tcp_track(track: Track, contexts: TlsContexts) -> EndpointTrack:
    """Return the check of a track whose target is host:port; raises ValueError."""
    place = server_endpoint(track.target)
    return EndpointTrack(probe_check(track, CheckType.TCP), place.host, place.port, contexts)


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
