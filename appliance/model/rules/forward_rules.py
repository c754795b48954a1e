"""Rules for `forward: kernel`: keys that need a proxy are refused with it, each with the reason.

The kernel translates addresses, and does not handle bytes: it cannot put a PROXY header before them, have
connections wait, try another server, or end them after a while.
"""

from collections.abc import Iterator
from typing import Final

from appliance.model.config.configuration import Config
from appliance.model.config.frontends import FrontendSection, KeepAliveSection
from appliance.model.config.pools import PoolSection
from appliance.model.config.values.addresses import literal
from appliance.model.messages.problems import Finding, Path
from appliance.model.rules.findings import error, key_error, warning
from appliance.model.rules.references import frontends
from appliance.model.snapshot.frontends import Flowtable, Forward, Masquerade
from appliance.model.snapshot.pools import Balance, SendProxy, SourceAddress

_FRONTEND_KEYS: Final = {
    "respond": "the kernel sends no responses",
    "clients": "a frontend's rules in the kernel lead to one pool",
    "sni": "the kernel does not read a client's bytes",
    "max_age": "the kernel closes no connection by its age",
    "timeouts": "the kernel's own timeouts apply (nf_conntrack_tcp_timeout_established)",
    "keepalive": "the connection is the client's and the server's: no probes come from here",
    "tcp_user_timeout": "the connection is the client's and the server's",
    "redirect": "it redirects to a listening socket, and there is none",
}
_POOL_KEYS: Final = {
    "max_queue": "connections do not wait in the kernel",
    "retries": "the kernel tries one server",
    "timeouts": "the kernel's own timeouts apply",
    "keepalive": "the connection is the client's and the server's: no probes come from here",
    "tcp_user_timeout": "the connection is the client's and the server's",
}
_COUNTING: Final = {
    Balance.LEASTCONN: "the kernel does not compare servers",
    Balance.FIRST: "no server is ever full for the kernel",
}


def findings(config: Config) -> Iterator[Finding]:
    """Yield what `forward: kernel` cannot do, and misplaced `masquerade`."""
    for path, frontend in frontends(config):
        if frontend.forward is not Forward.KERNEL:
            if "masquerade" in frontend.model_fields_set:
                message = "has no effect with `forward: proxy`: servers always see this node's address"
                yield warning((*path, "masquerade"), message, (*path, "forward"))
            if frontend.flowtable is not Flowtable.NONE:
                message = "needs `forward: kernel`: a worker's connections are not flows of the kernel"
                yield error((*path, "flowtable"), message, (*path, "forward"))
            continue
        yield from _frontend(path, frontend)
        yield from _binds(path, frontend)
        pool = config.pools.get(frontend.pool or "")
        if pool is not None:
            yield from _pool(("pools", frontend.pool or ""), pool, (*path, "forward"))
            yield from _families(path, frontend, pool)
        if frontend.masquerade is Masquerade.AUTO:
            yield _auto(path)


def _frontend(path: Path, frontend: FrontendSection) -> Iterator[Finding]:
    for key, reason in _FRONTEND_KEYS.items():
        if key in frontend.model_fields_set and _asks(getattr(frontend, key)):
            yield key_error((*path, key), f"needs `forward: proxy`: {reason}", (*path, "forward"))


def _asks(value: object) -> bool:
    """Return whether a key requests something: `off` and 0 are what the kernel does anyway."""
    return bool(value) and not (isinstance(value, KeepAliveSection) and value.count == 0)


def _binds(path: Path, frontend: FrontendSection) -> Iterator[Finding]:
    for index, bind in enumerate(frontend.bind):
        where: Path = (*path, "bind", index)
        address = literal(bind.host)
        if address is None or "%" in bind.host:
            message = f"`{bind.host}` must be an address: rules of the kernel take no names"
            yield error(where, message, (*path, "forward"))
        elif address.is_loopback:
            message = f"`{bind.host}` needs `forward: proxy`: packets to a loopback address stay on the host"
            yield error(where, message, (*path, "forward"))


def _pool(path: Path, pool: PoolSection, forward: Path) -> Iterator[Finding]:
    because = "a frontend with `forward: kernel` uses this pool"
    for key, reason in _POOL_KEYS.items():
        if key in pool.model_fields_set and _asks(getattr(pool, key)):
            yield key_error((*path, key), f"needs `forward: proxy`, and {because}: {reason}", forward)
    if pool.send_proxy is not SendProxy.NONE:
        message = f"needs `forward: proxy`, and {because}: the kernel adds nothing before a client's bytes"
        yield key_error((*path, "send_proxy"), message, forward)
    if pool.source is not SourceAddress.NODE:
        message = f"needs `forward: proxy`, and {because}: `masquerade` sets what servers see"
        yield key_error((*path, "source"), message, forward)
    found = pool.servers.discover
    if found and found.routers is not None and "send_proxy" not in pool.model_fields_set:
        message = "set `send_proxy: none` in this pool: the IngressController may expect a header"
        yield error(path, message, forward)
    if pool.balance in _COUNTING:
        message = f"needs `forward: proxy`, and {because}: {_COUNTING[pool.balance]}"
        yield error((*path, "balance"), message, forward)
    for name, server in pool.servers.by_name.items():
        if "%" in server.address.host:
            where: Path = (*path, "servers", name, "address")
            message = f"`{server.address.host}` needs `forward: proxy`, and {because}: "
            yield error(where, f"{message}rules of the kernel take no interface for a server", forward)
        if server.max_connections:
            message = f"needs `forward: proxy`, and {because}: connections do not wait in the kernel"
            yield key_error((*path, "servers", name, "max_connections"), message, forward)


def _families(path: Path, frontend: FrontendSection, pool: PoolSection) -> Iterator[Finding]:
    """Warn of a bind whose version of IP no server has: addresses are translated, versions are not."""
    servers = [literal(each.address.host) for each in pool.usable.values()]
    versions = {each.version for each in servers if each is not None}
    if None in servers or pool.servers.discover or not versions:
        return
    for index, bind in enumerate(frontend.bind):
        address = literal(bind.host)
        if address is None:
            continue
        taken = {4, 6} if bind.host == "::" else {address.version}
        for version in sorted(taken - versions):
            message = f"refuses IPv{version}: no server has such an address, and versions are not translated"
            yield warning((*path, "bind", index), message, (*path, "forward"))


def _auto(path: Path) -> Finding:
    message = (
        "servers see the clients' addresses, and must route replies through this node; clients from the "
        "servers' own networks, and this node's programs, appear with this node's address"
    )
    return warning((*path, "masquerade"), message, (*path, "forward"))
