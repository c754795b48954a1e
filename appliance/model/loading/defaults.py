"""Makes the snapshot of a configuration: fills in everything that was left out."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, Literal, TypeVar

from appliance.model.config.configuration import Config, DefaultsSection
from appliance.model.config.frontends import FrontendSection as FrontendSettings
from appliance.model.config.frontends import RedirectSection as RedirectSettings
from appliance.model.config.keepalive import KeepAliveSection as KeepAliveSettings
from appliance.model.config.kubernetes import KubernetesSection as KubernetesSettings
from appliance.model.config.linger import LingerSection
from appliance.model.config.notify import NotifyTargetSection
from appliance.model.config.pools import CheckSection as CheckSettings
from appliance.model.config.pools import DiscoverSection as DiscoverSettings
from appliance.model.config.pools import PoolSection as PoolSettings
from appliance.model.config.pools import ServerSection as ServerSettings
from appliance.model.config.stats import StatsSection
from appliance.model.config.values.addresses import Endpoint
from appliance.model.loading.virtual_router_defaults import hmac_key, virtual_router
from appliance.model.rules.references import groups
from appliance.model.snapshot.discovery import ApiAddress, Kubernetes, RouterPort, Source, SourceKind
from appliance.model.snapshot.frontends import Bind, Frontend, Group, Redirect
from appliance.model.snapshot.keepalive import KeepAlive
from appliance.model.snapshot.linger import Linger
from appliance.model.snapshot.notify import NotifyTarget
from appliance.model.snapshot.pools import Check, CheckType, Discovery, Pool, SendProxy, Server
from appliance.model.snapshot.snapshot import Log, Reload, Snapshot
from appliance.model.snapshot.stats import Stats
from appliance.model.snapshot.virtual_router import VirtualRouter

_Value = TypeVar("_Value")

MASTERS_PORT: Final = 6443
"""Port of the API on masters."""

INFORMED_WITHIN: Final = 60.0
"""Longest time, in seconds, for which a node that comes back waits to know whose connections there are."""

_FAMILIES: Final[Mapping[str, Literal[4, 6] | None]] = {"auto": None, "ipv4": 4, "ipv6": 6}


def fill(config: Config, *, number: int, source: str, drain: float | None) -> Snapshot:
    """Return the snapshot of a configuration without errors; `drain` (seconds) wins over the file's."""
    return Snapshot(
        number=number,
        source=source,
        cluster=config.cluster.name,
        domain=config.cluster.domain,
        groups=tuple(_groups(config)),
        pools=tuple(_pool(name, pool, config.defaults) for name, pool in config.pools.items()),
        drain=config.defaults.drain if drain is None else drain,
        reload=Reload(
            sockets=config.reload.sockets,
            max_draining=config.reload.max_draining,
            watch=config.reload.watch,
            sessions=config.reload.sessions,
        ),
        watchdog=config.watchdog,
        readers=config.group,
        kubernetes=_kubernetes(config.kubernetes) if config.kubernetes and _discovers(config) else None,
        stats=_stats(config.stats) if config.stats else None,
        notify=tuple(_notify(name, given) for name, given in config.notify.items()),
        linger=_linger(config.linger) if config.linger and config.virtual_ips else None,
        log=Log(
            level=config.log.level,
            format=config.log.format,
            connections=config.log.connections,
            file=config.log.file,
        ),
        virtual_routers=tuple(
            _informed(virtual_router(name, given, cluster=config.cluster.name), config)
            for name, given in sorted(config.virtual_ips.items())  # their order means nothing
        ),
    )


def _informed(router: VirtualRouter, config: Config) -> VirtualRouter:
    """Have a node that comes back take nothing over before it knows whose connections there are."""
    return replace(router, informed_within=INFORMED_WITHIN) if config.linger else router


def _linger(given: LingerSection) -> Linger:
    keys = tuple(hmac_key(number, key) for number, key in enumerate((given.key, *given.accept), start=1))
    return Linger(longest=given.longest, port=given.port, keys=keys)


def _groups(config: Config) -> Iterator[Group]:
    """Yield the groups with frontends; the program of a group without any is not started."""
    for name, group in groups(config):
        frontends = (_frontend(each, given, config.defaults) for each, given in group.frontends.items())
        if group.frontends:
            yield Group(name=name, workers=group.workers, frontends=tuple(frontends))


def _frontend(name: str, given: FrontendSettings, defaults: DefaultsSection) -> Frontend:
    timeouts = defaults.timeouts
    return Frontend(
        name=name,
        binds=tuple(_bind(endpoint) for endpoint in given.bind),
        pool=given.pool,
        respond=given.respond,
        needs=given.needs,
        allow=given.allow,
        deny=given.deny,
        max_connections=_first(given.max_connections, defaults.max_connections),
        timeout_client=_first(given.timeouts.client, timeouts.client),
        timeout_client_fin=_first(given.timeouts.client_fin, timeouts.client_fin),
        max_age=given.max_age or None,
        max_age_jitter=given.max_age_jitter,
        keepalive=_keepalive(given.keepalive or defaults.keepalive),
        tcp_user_timeout=_first(given.tcp_user_timeout, defaults.tcp_user_timeout) or None,
        redirect=_redirect(given.redirect) if given.redirect else None,
        forward=given.forward,
        masquerade=given.masquerade,
        flowtable=given.flowtable,
        sni=given.sni,
        timeout_hello=given.timeouts.hello,
    )


def _redirect(given: RedirectSettings) -> Redirect:
    return Redirect(
        sources=tuple(_bind(endpoint) for endpoint in given.sources),
        when=given.when,
        interval=given.interval,
        rise=given.rise,
        fall=given.fall,
    )


def _pool(name: str, given: PoolSettings, defaults: DefaultsSection) -> Pool:
    timeouts = defaults.timeouts
    connect = _first(given.timeouts.connect, timeouts.connect)
    discover = given.servers.discover
    # One for all servers without an own check, not an equal one for each: there may be 40,000.
    shared = _check(_merged_check(given.check, None), connect=connect, send_proxy=given.send_proxy)
    return Pool(
        name=name,
        balance=given.balance,
        hash_on=given.hash_on,
        slow_start=given.slow_start,
        on_down=given.on_down,
        panic=given.panic,
        all_backups=given.all_backups,
        send_proxy=given.send_proxy,
        retries=_first(given.retries, defaults.retries),
        max_queue=given.max_queue,
        timeout_connect=connect,
        timeout_queue=_first(given.timeouts.queue, timeouts.queue),
        timeout_server=_first(given.timeouts.server, timeouts.server),
        timeout_server_fin=_first(given.timeouts.server_fin, timeouts.server_fin),
        keepalive=_keepalive(given.keepalive or defaults.keepalive),
        tcp_user_timeout=_first(given.tcp_user_timeout, defaults.tcp_user_timeout) or None,
        servers=tuple(
            _server(
                each,
                server,
                _check(_merged_check(given.check, server.check), connect=connect, send_proxy=given.send_proxy)
                if server.check
                else shared,
            )
            for each, server in given.usable.items()
        ),
        discover=_discovery(discover, given, shared) if discover else None,
    )


def _server(name: str, given: ServerSettings, check: Check | None) -> Server:
    return Server(
        name=name,
        host=given.address.host,
        port=given.address.port,
        weight=given.weight,
        backup=given.backup,
        max_connections=given.max_connections,
        check=check,
    )


def _discovery(given: DiscoverSettings, pool: PoolSettings, check: Check | None) -> Discovery:
    """Return what a pool's discovered servers are like; the port of masters is that of their API."""
    if given.nodes is not None:
        source = Source(kind=SourceKind.NODES, what=given.nodes)
    else:
        source = Source(kind=SourceKind.ROUTERS, what=given.routers or "")
    settings = _merged_check(pool.check, None)
    said = "send_proxy" in pool.model_fields_set
    return Discovery(
        source=source,
        port=_first(given.port, MASTERS_PORT if source.is_masters else RouterPort.HTTPS),
        template=Server(
            name="",
            host="",
            port=0,
            weight=1,
            backup=False,
            max_connections=0,
            check=check,
            discovered=True,
        ),
        send_proxy=pool.send_proxy if said else None,
        check_follows=settings.send_proxy is None and settings.address is None and settings.port is None,
    )


def _kubernetes(given: KubernetesSettings) -> Kubernetes:
    return Kubernetes(
        kubeconfig=given.kubeconfig,
        token_file=given.token_file,
        ca=given.ca,
        api=tuple(ApiAddress(host=each.host, port=each.port) for each in given.api),
        server_name=given.server_name,
        family=_FAMILIES[given.family],
    )


def _discovers(config: Config) -> bool:
    return any(pool.servers.discover for pool in config.pools.values())


def _merged_check(below: CheckSettings | None, above: CheckSettings | None) -> CheckSettings:
    """Return the pool's check with the server's own keys in place of its own; without both a TCP check."""
    bottom = below or CheckSettings()
    if above is None:
        return bottom
    return bottom.model_copy(update={key: getattr(above, key) for key in above.model_fields_set})


def _check(given: CheckSettings, *, connect: float, send_proxy: SendProxy) -> Check | None:
    if given.type == "none":
        return None
    elsewhere = given.address is not None or given.port is not None
    return Check(
        type=CheckType(given.type),
        method=given.method,
        path=given.path,
        host=given.host,
        expect=given.expect,
        expect_body=given.expect_body,
        sni=given.sni,
        verify=given.verify,
        address=given.address,
        port=given.port,
        interval=given.interval,
        fast_interval=_first(given.fast_interval, given.interval),
        down_interval=_first(given.down_interval, given.interval),
        timeout=given.timeout,
        # HAProxy's rule for checks ("timeout check" in configuration.txt): min(timeout connect, inter).
        timeout_connect=min(connect, given.interval),
        rise=given.rise,
        fall=given.fall,
        error_limit=given.error_limit,
        init=given.init,
        send_proxy=_first(given.send_proxy, SendProxy.NONE if elsewhere else send_proxy),
        reuse=given.reuse,
        steps=given.steps or () if given.type in ("tcp", "tls") else (),
    )


def _keepalive(given: KeepAliveSettings) -> KeepAlive | None:
    if given.count == 0:
        return None
    return KeepAlive(idle=given.idle, interval=given.interval, count=given.count)


def _stats(given: StatsSection) -> Stats:
    return Stats(
        bind=_bind(given.bind),
        more_binds=tuple(map(_bind, given.also_bind)),
        paths=given.uri,
        respond=given.respond,
        needs=given.needs,
        user=given.auth.user if given.auth else None,
        password_file=given.auth.password_file if given.auth else None,
        password=given.auth.password if given.auth else None,
        certificate=given.tls.certificate if given.tls else None,
        key=given.tls.key if given.tls else None,
        allow=given.allow,
        deny=given.deny,
        socket=given.socket,
        admin=given.admin == "on",
    )


def _notify(name: str, given: NotifyTargetSection) -> NotifyTarget:
    return NotifyTarget(
        name=name,
        severity=given.severity,
        timeout=given.timeout,
        form=given.form,
        command=given.command or (),
        webhook=given.webhook,
        webhook_file=given.webhook_file,
        token_file=given.token_file,
        syslog=given.syslog,
        ca=given.ca,
        events=given.events,
    )


def _bind(endpoint: Endpoint) -> Bind:
    return Bind(host=endpoint.host, port=endpoint.port)


def _first(given: _Value | None, default: _Value) -> _Value:
    return default if given is None else given
