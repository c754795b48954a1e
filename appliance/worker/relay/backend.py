"""A pool as sessions use it: the balancing decision, and how to connect to its servers."""

from bisect import bisect_left
from collections.abc import Callable
from typing import Final

from appliance.core.balancing.pool_state import LostMembers, PoolState
from appliance.model.snapshot.pools import Balance, Pool, SendProxy, SourceAddress
from appliance.wire import proxy_protocol, sockaddr
from appliance.wire.boards.worker_board import CONNECT_BOUNDS, PoolTimes
from appliance.worker.relay import tcp
from appliance.worker.relay.virtual_source import VirtualSource

_RETRY_DELAY: Final = 1.0
"""Longest wait before the same server is tried again, in seconds (HAProxy's `retries`)."""


class Backend:
    """A pool's decisions, socket options and times (seconds).

    The configuration's values are copied into plain attributes, because every connection reads them.
    `options` are set before a connect, `keepalive` on a connection that lasts. `connects` counts connects by
    how long they took (`CONNECT_BOUNDS`). `far` is the number of next connects that wait for an event, as the
    servers are not on this machine. `hashed` is whether the algorithm needs a key, `proxied` whether servers
    expect a PROXY header. `source` connects from virtual IPs, None if all connects come from the node.
    """

    __slots__ = (
        "connects",
        "far",
        "hashed",
        "keepalive",
        "options",
        "pool",
        "proxied",
        "retries",
        "retry_delay",
        "source",
        "timeout_connect",
        "timeout_queue",
        "timeout_server",
        "timeout_server_fin",
    )

    def __init__(self, pool: PoolState) -> None:
        self.pool = pool
        self.connects = [0] * (len(CONNECT_BOUNDS) + 1)
        self.far = 0
        self.source: VirtualSource | None = None
        self._copy(pool.config)

    def apply(self, config: Pool) -> LostMembers:
        """Use a new configuration from now on; return members that are now found down or in maintenance."""
        lost = self.pool.apply(config)
        self._copy(config)
        return lost

    def connect_from(self, virtual_ips: frozenset[str], on_failure: Callable[[str, int], None]) -> None:
        """Connect from these addresses from now on, if the pool's `source` says so; see `VirtualSource`."""
        config, self.source = self.pool.config, None
        if config.source is SourceAddress.VIRTUAL_IP and virtual_ips:
            self.source = VirtualSource(virtual_ips, config.source_ports, self.options, on_failure)

    def _copy(self, config: Pool) -> None:
        self.hashed = config.balance in (Balance.SOURCE, Balance.HASH)
        self.proxied = config.send_proxy is not SendProxy.NONE
        self.options = tcp.accepted(tcp.connect_options(config.tcp_user_timeout))
        self.keepalive = tcp.accepted(tcp.keepalive_options(config.keepalive))
        self.retries = config.retries
        self.retry_delay = min(_RETRY_DELAY, config.timeout_connect)
        self.timeout_connect = config.timeout_connect
        self.timeout_queue = config.timeout_queue
        self.timeout_server = config.timeout_server
        self.timeout_server_fin = config.timeout_server_fin

    def count_connect(self, seconds: float) -> None:
        """Count a finished connect by its duration."""
        self.connects[bisect_left(CONNECT_BOUNDS, seconds)] += 1

    def times(self) -> PoolTimes:
        """Return what the worker's board shows of this pool."""
        return PoolTimes(pool=self.pool.config.name, connects=tuple(self.connects))

    def key(self, client: int, address: bytes) -> bytes:
        """Return the hash key of a client, given its descriptor and its address."""
        config = self.pool.config
        if config.balance is Balance.SOURCE:
            return sockaddr.packed(address)
        return b"".join(_field(name, client, address) for name in config.hash_on)

    def header(self, client: int, address: bytes) -> bytes:
        """Return the PROXY header of a client."""
        source = sockaddr.host(address), sockaddr.port(address)
        return proxy_protocol.encode(self.pool.config.send_proxy, source, tcp.local_address(client))


def _field(name: str, client: int, address: bytes) -> bytes:
    if name == "source":
        return sockaddr.packed(address)
    if name == "source-port":
        return sockaddr.port(address).to_bytes(2, "big")
    host, port = tcp.local_address(client)
    return host.encode() if name == "destination" else port.to_bytes(2, "big")
