"""Tracks whether a TCP port accepts connections."""

from appliance.model.config.values.addresses import server_endpoint
from appliance.model.snapshot.pools import CheckType
from appliance.model.snapshot.virtual_router import Track
from appliance.net.probing.tls_contexts import TlsContexts
from appliance.tracker.endpoint import EndpointTrack, probe_check


def tcp_track(track: Track, contexts: TlsContexts) -> EndpointTrack:
    """Return the check of a track whose target is host:port; raises ValueError."""
    place = server_endpoint(track.target)
    return EndpointTrack(probe_check(track, CheckType.TCP), place.host, place.port, contexts)
