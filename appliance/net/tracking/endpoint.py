"""Tracks whether a server answers, by the probe of health checks; `localhost` is both loopbacks."""

import time
from typing import Final
from urllib.parse import SplitResult, urlsplit

from appliance.core.checks.check_outcome import CheckOutcome
from appliance.model.check_results import CheckResult
from appliance.model.config.values.addresses import server_endpoint
from appliance.model.snapshot.pools import Check, CheckInit, CheckType, SendProxy
from appliance.model.snapshot.virtual_router import Track
from appliance.net.probing.probe import Probe, ProbeImpossible
from appliance.net.probing.resolver import Resolver
from appliance.net.probing.tls_contexts import TlsContexts
from appliance.net.tracking.track_check import LookResult, TrackCheck, TrackUnknown
from appliance.wire.literal import is_literal

_LOOPBACK: Final = ("::1", "127.0.0.1")
_NOBODY_THERE: Final = frozenset({CheckResult.L4CON, CheckResult.L4TOUT})
_PORTS: Final = {CheckType.HTTP: 80, CheckType.HTTPS: 443}


class EndpointTrack(TrackCheck):
    """Probes a host and port; the address that answered last is tried first."""

    def __init__(self, check: Check, host: str, port: int, contexts: TlsContexts) -> None:
        self._check = check
        self._host = host
        self._port = port
        self._contexts = contexts
        self._probes: dict[str, Probe] = {}
        self._resolver = Resolver(lambda _, __: None)
        self._named = host.lower() != "localhost" and not is_literal(host)
        self._addresses: tuple[str, ...] = _LOOPBACK if host.lower() == "localhost" else (host,)
        if self._named:
            self._resolver.want([host])

    def look(self) -> LookResult:
        """Probe now, within the track's timeout in total, and return the result; raises TrackUnknown."""
        until = time.monotonic() + self._check.timeout
        if self._named:
            address = self._resolver.address(self._host, timeout=self._check.timeout)
            if not address:
                return LookResult(up=False, detail=self._unresolved())
            self._follow(address)
        try:
            outcome = self._ask(until)
        except ProbeImpossible as error:
            raise TrackUnknown(str(error)) from error
        if not outcome.passed:
            self._resolver.ask_soon(self._host)
        return LookResult(up=outcome.passed, detail=_detail(outcome))

    def close(self) -> None:
        """Stop resolving the name."""
        self._resolver.close()

    def _follow(self, address: str) -> None:
        if self._addresses != (address,):
            self._addresses = (address,)
            self._probes.clear()

    def _ask(self, until: float) -> CheckOutcome:
        """Probe the first address, then the next if the connection was refused, which takes no time."""
        first, *others = self._addresses
        outcome = self._probe(first).run(until=until)
        for address in others:
            if outcome.result not in _NOBODY_THERE:
                break
            self._addresses = (*others, first)
            if outcome.result is CheckResult.L4CON:
                outcome = self._probe(address).run(until=until)
        return outcome

    def _probe(self, address: str) -> Probe:
        if address not in self._probes:
            self._probes[address] = Probe(self._check, address, self._port, self._contexts)
        return self._probes[address]

    def _unresolved(self) -> str:
        return f"name {self._host} not resolved: {self._resolver.problem(self._host) or 'no answer yet'}"


def _probe_check(
    track: Track, kind: CheckType, *, path: str = "/", host: str | None = None, sni: str | None = None
) -> Check:
    """Return the settings of a health check for a track: GET, without a PROXY header."""
    return Check(
        type=kind,
        method="GET",
        path=path,
        host=host,
        expect=track.expect,
        expect_body=None,
        sni=sni,
        verify=track.verify,
        address=None,
        port=None,
        interval=track.interval,
        fast_interval=track.interval,
        down_interval=track.interval,
        timeout=track.timeout,
        timeout_connect=track.timeout,
        rise=track.rise,
        fall=track.fall,
        error_limit=0,
        init=CheckInit.CHECK,
        send_proxy=SendProxy.NONE,
    )


def _detail(outcome: CheckOutcome) -> str:
    if outcome.status:
        return f"HTTP {outcome.status} {outcome.detail}".rstrip()
    return outcome.detail or ("it accepts" if outcome.passed else outcome.result.value)


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
    check = _probe_check(track, kind, path=_path(url), host=_host(url, kind), sni=sni)
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
    return EndpointTrack(_probe_check(track, CheckType.TCP), place.host, place.port, contexts)
