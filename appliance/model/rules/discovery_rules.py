"""Rules for discovered servers: their source, their port, and how the API is asked."""

from collections.abc import Iterator

from appliance.model.config.configuration import Config, KubernetesSection
from appliance.model.config.pools import DiscoverSection
from appliance.model.messages.problems import Finding, Path
from appliance.model.rules.findings import error, warning
from appliance.model.rules.references import frontends
from appliance.model.snapshot.discovery import MASTERS, RouterPort

_STANDARD: dict[int, RouterPort] = {80: RouterPort.HTTP, 443: RouterPort.HTTPS}


def findings(config: Config) -> Iterator[Finding]:
    """Yield missing keys and contradictions in pools with discovered servers and in `kubernetes`."""
    discovering = {
        name: pool.servers.discover for name, pool in config.pools.items() if pool.servers.discover
    }
    for name, discover in discovering.items():
        path: Path = ("pools", name, "servers", "discover")
        yield from _discover(path, discover)
        yield from _other_port(path, name, discover, config)
    if config.kubernetes is not None:
        yield from _access(config.kubernetes)
        if not discovering:
            message = "has no effect: no pool has `servers: {discover: ...}`"
            yield warning(("kubernetes",), message, ("pools",))
    elif discovering:
        message = "needs the section `kubernetes`, which sets how to reach the cluster's API"
        yield error(("pools", next(iter(discovering)), "servers", "discover"), message, ("kubernetes",))


def _discover(path: Path, discover: DiscoverSection) -> Iterator[Finding]:
    keys = ((*path, "nodes"), (*path, "routers"), (*path, "port"))
    if (discover.nodes is None) == (discover.routers is None):
        message = "must be `masters`, or set one of `nodes` (a label) and `routers` (an IngressController)"
        yield error(path, message, *keys)
    elif discover.nodes is not None and isinstance(discover.port, RouterPort):
        message = f"`{discover.port}` is a port of `routers`: a port of `nodes` is a number"
        yield error((*path, "port"), message, *keys)
    elif discover.nodes not in (None, MASTERS) and discover.port is None:
        message = "must set the `port` of these Nodes: for example `port: 30443`"
        yield error(path, message, *keys)


def _other_port(path: Path, name: str, discover: DiscoverSection, config: Config) -> Iterator[Finding]:
    """Warn if port 80 would lead to the routers' 443, or the reverse."""
    ours = discover.port or RouterPort.HTTPS
    for at, frontend in frontends(config):
        ports = {bind.port for bind in frontend.bind if bind.port in _STANDARD}
        if name not in frontend.pools or discover.routers is None or len(ports) != 1:
            continue
        standard = _STANDARD[ports.pop()]
        if isinstance(ours, RouterPort) and ours is not standard:
            message = f"leads to the routers' port `{ours}`: {at[-1]} needs `port: {standard}`"
            yield warning(path, message, at)


def _access(given: KubernetesSection) -> Iterator[Finding]:
    path: Path = ("kubernetes",)
    missing = [key for key in ("token_file", "ca", "api") if not getattr(given, key)]
    if missing and given.kubeconfig is None:
        words = ", ".join(f"`{each}`" for each in missing)
        message = f"must set `kubeconfig`, or `token_file`, `ca` and `api`; missing: {words}"
        yield error(path, message, *((*path, key) for key in ("kubeconfig", *missing)))
