"""Tracks what an HTTP or HTTPS server answers, asked as curl asks: with the URL's host in Host and SNI."""

from typing import Final
from urllib.parse import SplitResult, urlsplit

from appliance.model.snapshot.pools import CheckType
from appliance.model.snapshot.virtual_router import Track
from appliance.net.probing.tls_contexts import TlsContexts
from appliance.tracker.endpoint import EndpointTrack, probe_check

_PORTS: Final = {CheckType.HTTP: 80, CheckType.HTTPS: 443}


def http_track(track: Track, contexts: TlsContexts) -> EndpointTrack:
    """Return the check of a track whose target is a URL; raises ValueError.

    With a CA file the certificate has to be for the URL's host as well, be it a name or an address.
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
    """Return the Host header: the port stands in it unless it is the scheme's own (RFC 9110 section 7.2)."""
    name = f"[{url.hostname}]" if ":" in (url.hostname or "") else url.hostname or ""
    return name if url.port in {None, _PORTS[kind]} else f"{name}:{url.port}"
