"""The servers discovered in the cluster, as `discover` stores them in a file, and how pools get them.

From a snapshot and the discovered servers to a snapshot that includes them: so a change in the cluster does
not require the operator's file, which may be half written or have errors by now.
"""

from dataclasses import dataclass, replace
from typing import Final

import msgspec

from appliance.model.server_names import server_name
from appliance.model.snapshot.discovery import RouterPort, Source
from appliance.model.snapshot.pools import Discovery, Pool, SendProxy, Server
from appliance.model.snapshot.snapshot import Snapshot

BOOTSTRAP: Final = "bootstrap"
"""Name of the server that serves the API while a cluster is installed (OpenShift's word)."""

MOST_SERVERS: Final = 5000
"""Most servers of a source: Kubernetes itself is designed for that many Nodes."""


class FoundServersError(Exception):
    """The file does not contain found servers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundServer:
    """One machine: the name of its Node, a literal address, and the ports of a router that runs there."""

    name: str
    host: str
    http: int = 80
    https: int = 443


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSource:
    """The servers of one source, sorted by name; `proxy` is whether it wants the PROXY protocol.

    `changed_at` is when the list last changed, Unix seconds.
    """

    source: Source
    servers: tuple[FoundServer, ...]
    proxy: bool = False
    changed_at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundServers:
    """All found servers. `installed` is whether the cluster's bootstrap is complete."""

    sources: tuple[FoundSource, ...] = ()
    installed: bool = False

    def of(self, source: Source) -> FoundSource | None:
        """Return the servers of a source, None if nothing is known of it."""
        return next((each for each in self.sources if each.source == source), None)


NOTHING: Final = FoundServers()
"""The value before anything was found."""


def encode(found: FoundServers) -> bytes:
    """Return found servers as JSON."""
    return msgspec.json.encode(found)


def decode(data: bytes) -> FoundServers:
    """Return what `encode` wrote; raises FoundServersError."""
    try:
        found = msgspec.json.decode(data, type=FoundServers)
    except (ValueError, RecursionError) as error:  # msgspec's own errors are ValueErrors
        raise FoundServersError(str(error)) from error
    if any(len(each.servers) > MOST_SERVERS for each in found.sources):
        raise FoundServersError(f"more than {MOST_SERVERS} servers")
    return found


def with_found(snapshot: Snapshot, found: FoundServers, *, before: Snapshot | None) -> Snapshot:
    """Return the snapshot whose pools have these servers in place of those found before.

    A source that is unknown, because the file is lost, keeps the servers that `before` has.
    """
    return replace(snapshot, pools=tuple(_pool(each, found, before) for each in snapshot.pools))


def known_from(snapshot: Snapshot, source: Source) -> FoundSource | None:
    """Return the servers of a source in a snapshot, None if it has none."""
    for pool in snapshot.pools:
        if pool.discover is not None and pool.discover.source == source:
            servers = tuple(_known(each, pool.discover) for each in pool.servers if each.discovered)
            if servers:
                return FoundSource(source=source, servers=servers, proxy=pool.send_proxy is SendProxy.V2)
    return None


def _known(server: Server, discovery: Discovery) -> FoundServer:
    ports = {discovery.port.value: server.port} if isinstance(discovery.port, RouterPort) else {}
    return FoundServer(name=server.name, host=server.host, **ports)


def _pool(pool: Pool, found: FoundServers, before: Snapshot | None) -> Pool:
    if pool.discover is None:
        return pool
    source = found.of(pool.discover.source)
    if source is None and before is not None:
        source = known_from(before, pool.discover.source)
    written = tuple(each for each in pool.servers if not each.discovered and not _is_over(each, pool, found))
    header = _header(pool.discover, proxy=source is not None and source.proxy)
    servers = _servers(pool.discover, source, written, header) if source else ()
    return replace(pool, servers=(*written, *servers), send_proxy=header)


def _is_over(server: Server, pool: Pool, found: FoundServers) -> bool:
    """Return whether this is the bootstrap server of an installation that is complete."""
    masters = pool.discover is not None and pool.discover.source.is_masters
    return found.installed and masters and server.name == BOOTSTRAP


def _header(discovery: Discovery, *, proxy: bool) -> SendProxy:
    if discovery.send_proxy is not None:
        return discovery.send_proxy
    return SendProxy.V2 if proxy else SendProxy.NONE


def _servers(
    discovery: Discovery, source: FoundSource, written: tuple[Server, ...], header: SendProxy
) -> tuple[Server, ...]:
    """Return the found servers, except those that the operator has listed, with that name or address."""
    template = discovery.template
    if template.check is not None and discovery.check_follows:
        template = replace(template, check=replace(template.check, send_proxy=header))
    names = {each.name for each in written}
    places = {(each.host, each.port) for each in written}
    servers: list[Server] = []
    for each in source.servers:
        name, port = server_name(each.name), _port(discovery, each)
        if name not in names and (each.host, port) not in places:
            names.add(name)
            places.add((each.host, port))
            servers.append(replace(template, name=name, host=each.host, port=port))
    return tuple(servers)


def _port(discovery: Discovery, server: FoundServer) -> int:
    match discovery.port:
        case RouterPort.HTTP:
            return server.http
        case RouterPort.HTTPS:
            return server.https
        case number:
            return number
