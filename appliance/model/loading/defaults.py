"""Makes the snapshot of a configuration: fills in everything that was left out."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, Literal, TypeVar

from appliance.model.config.bgp import BgpSection
from appliance.model.config.configuration import Config, DefaultsSection, NotifyTargetSection
from appliance.model.config.configuration import KubernetesSection as KubernetesSettings
from appliance.model.config.frontends import FrontendSection as FrontendSettings
from appliance.model.config.frontends import KeepAliveSection as KeepAliveSettings
from appliance.model.config.frontends import RedirectSection as RedirectSettings
from appliance.model.config.linger import LingerSection
from appliance.model.config.pools import CheckSection as CheckSettings
from appliance.model.config.pools import DiscoverSection as DiscoverSettings
from appliance.model.config.pools import FurtherCheckSection
from appliance.model.config.pools import PoolSection as PoolSettings
from appliance.model.config.pools import ServerSection as ServerSettings
from appliance.model.config.stats import StatsSection
from appliance.model.config.values.addresses import Endpoint
from appliance.model.loading.copied import copied
from appliance.model.loading.shared_ip_defaults import bgp, shared_ip
from appliance.model.loading.virtual_router_defaults import INFORMED_WITHIN, hmac_key, virtual_router
from appliance.model.program_names import FORWARD, LINGER
from appliance.model.rules.references import groups
from appliance.model.rules.source_rules import ports_at
from appliance.model.snapshot.discovery import ApiAddress, Kubernetes, RouterPort, Source, SourceKind
from appliance.model.snapshot.frontends import Bind, Frontend, Group, KeepAlive, Redirect
from appliance.model.snapshot.linger import Linger, MovedSessions, Vxlan
from appliance.model.snapshot.pools import (
    SOURCE_PORTS,
    Check,
    CheckStep,
    CheckType,
    Discovery,
    Pool,
    SendProxy,
    Server,
    SourceAddress,
)
from appliance.model.snapshot.snapshot import Log, NotifyTarget, Reload, Snapshot, Stats
from appliance.model.snapshot.sync import synced_routers
from appliance.model.snapshot.virtual_router import VirtualRouter

_Value = TypeVar("_Value")

MASTERS_PORT: Final = 6443
"""Port of the API on masters."""

_NO_BGP: Final = BgpSection.model_validate({"engine": "table", "asn": 64512})
"""For routers with a static route: the tables are written, and no daemon has to read them."""

_FAMILIES: Final[Mapping[str, Literal[4, 6] | None]] = {"auto": None, "ipv4": 4, "ipv6": 6}


def fill(
    config: Config, *, number: int, source: str, drain: float | None, node: str | None = None
) -> Snapshot:
    """Return a node's snapshot of a configuration without errors; `drain` (seconds) wins over the file's."""
    ports = ports_at(node, tuple(config.nodes))
    made = Snapshot(
        number=number,
        source=source,
        cluster=config.cluster.name,
        domain=config.cluster.domain,
        groups=tuple(_groups(config)),
        pools=tuple(_pool(name, pool, config.defaults, ports) for name, pool in config.pools.items()),
        drain=config.defaults.drain if drain is None else drain,
        reload=copied(Reload, config.reload),
        watchdog=config.watchdog,
        readers=config.group,
        kubernetes=_kubernetes(config.kubernetes) if config.kubernetes and _discovers(config) else None,
        stats=_stats(config.stats) if config.stats else None,
        notify=tuple(_notify(name, given) for name, given in config.notify.items()),
        linger=_linger(config.linger)
        if config.linger and (config.virtual_ips or config.shared_ips)
        else None,
        shared_ips=tuple(shared_ip(name, given) for name, given in sorted(config.shared_ips.items())),
        bgp=bgp(config.bgp or _NO_BGP) if config.shared_ips else None,
        log=copied(Log, config.log),
        virtual_routers=tuple(
            virtual_router(name, given, cluster=config.cluster.name)
            for name, given in sorted(config.virtual_ips.items())  # their order means nothing
        ),
    )
    return replace(made, virtual_routers=tuple(_informed(made)))


def _informed(made: Snapshot) -> Iterator[VirtualRouter]:
    """Yield the virtual routers: a returning node takes none over before it knows what connections exist."""
    synced = synced_routers(made)
    for each in made.virtual_routers:
        informers = (*([LINGER] if made.linger else []), *([FORWARD] if each in synced else []))
        within = INFORMED_WITHIN if informers else 0.0
        yield replace(each, informers=informers, informed_within=within)


def _linger(given: LingerSection) -> Linger:
    keys = tuple(hmac_key(number, key) for number, key in enumerate((given.key, *given.accept), start=1))
    sessions = copied(MovedSessions, given.sessions) if given.sessions else None
    vxlan = copied(Vxlan, given.vxlan) if given.vxlan else None
    return copied(Linger, given, keys=keys, sessions=sessions, vxlan=vxlan)


def _groups(config: Config) -> Iterator[Group]:
    """Yield the groups with frontends; the program of a group without any is not started."""
    for name, group in groups(config):
        frontends = (_frontend(each, given, config.defaults) for each, given in group.frontends.items())
        if group.frontends:
            yield Group(name=name, workers=group.workers, frontends=tuple(frontends))


def _frontend(name: str, given: FrontendSettings, defaults: DefaultsSection) -> Frontend:
    timeouts = defaults.timeouts
    return copied(
        Frontend,
        given,
        name=name,
        binds=tuple(_bind(endpoint) for endpoint in given.bind),
        max_connections=_first(given.max_connections, defaults.max_connections),
        timeout_client=_first(given.timeouts.client, timeouts.client),
        timeout_client_fin=_first(given.timeouts.client_fin, timeouts.client_fin),
        max_age=given.max_age or None,
        keepalive=_keepalive(given.keepalive or defaults.keepalive),
        tcp_user_timeout=_first(given.tcp_user_timeout, defaults.tcp_user_timeout) or None,
        redirect=_redirect(given.redirect) if given.redirect else None,
        timeout_hello=given.timeouts.hello,
    )


def _redirect(given: RedirectSettings) -> Redirect:
    return copied(Redirect, given, sources=tuple(_bind(endpoint) for endpoint in given.sources))


def _pool(name: str, given: PoolSettings, defaults: DefaultsSection, ports: tuple[int, int]) -> Pool:
    timeouts = defaults.timeouts
    connect = _first(given.timeouts.connect, timeouts.connect)
    discover = given.servers.discover
    # One for all servers without an own check, instead of equal ones: there may be 40,000.
    shared = _check(_merged_check(given.check, None), connect=connect, send_proxy=given.send_proxy)
    return copied(
        Pool,
        given,
        name=name,
        source_ports=given.source_ports or (SOURCE_PORTS if given.source is SourceAddress.NODE else ports),
        retries=_first(given.retries, defaults.retries),
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
    """Return the template of a pool's discovered servers; the port of masters is that of their API."""
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
    api = tuple(ApiAddress(host=each.host, port=each.port) for each in given.api)
    return copied(Kubernetes, given, api=api, family=_FAMILIES[given.family])


def _discovers(config: Config) -> bool:
    return any(pool.servers.discover for pool in config.pools.values())


def _merged_check(below: CheckSettings | None, above: CheckSettings | None) -> CheckSettings:
    """Return the pool's check with the server's own keys instead of its own; without both a TCP check."""
    bottom = below or CheckSettings()
    if above is None:
        return bottom
    return bottom.model_copy(update={key: getattr(above, key) for key in above.model_fields_set})


def _check(given: CheckSettings, *, connect: float, send_proxy: SendProxy) -> Check | None:
    if given.type == "none":
        return None
    elsewhere = given.address is not None or given.port is not None
    first = copied(
        Check,
        given,
        type=CheckType(given.type),
        fast_interval=_first(given.fast_interval, given.interval),
        down_interval=_first(given.down_interval, given.interval),
        # HAProxy's rule for checks ("timeout check" in configuration.txt): min(timeout connect, inter).
        timeout_connect=min(connect, given.interval),
        send_proxy=_first(given.send_proxy, SendProxy.NONE if elsewhere else send_proxy),
        steps=_steps(given.steps, given.type),
        expect_digest=given.expect_digest or "",
        also=(),
        command=given.command or (),
    )
    return replace(first, also=tuple((name, _further(each, first)) for name, each in given.also.items()))


def _further(given: FurtherCheckSection, first: Check) -> Check:
    """Return a further check: it goes where the first one goes, unless it names another place."""
    kind = given.type or first.type.value
    moved = given.address is not None or given.port is not None
    return replace(
        first,
        type=CheckType(kind),
        method=given.method,
        path=given.path,
        host=given.host,
        expect=given.expect,
        expect_body=given.expect_body,
        expect_digest=given.expect_digest or "",
        steps=_steps(given.steps, kind),
        sni=given.sni,
        verify=given.verify if "verify" in given.model_fields_set else first.verify,
        address=given.address or first.address,
        port=given.port or first.port,
        send_proxy=_first(given.send_proxy, SendProxy.NONE if moved else first.send_proxy),
        reuse=first.reuse and kind in ("http", "https"),
    )


def _steps(given: tuple[CheckStep, ...] | None, kind: str) -> tuple[CheckStep, ...]:
    return given or () if kind in ("tcp", "tls") else ()


def _keepalive(given: KeepAliveSettings) -> KeepAlive | None:
    if given.count == 0:
        return None
    return copied(KeepAlive, given)


def _stats(given: StatsSection) -> Stats:
    return copied(
        Stats,
        given,
        bind=_bind(given.bind),
        more_binds=tuple(map(_bind, given.also_bind)),
        paths=given.uri,
        user=given.auth.user if given.auth else None,
        password_file=given.auth.password_file if given.auth else None,
        password=given.auth.password if given.auth else None,
        certificate=given.tls.certificate if given.tls else None,
        key=given.tls.key if given.tls else None,
        admin=given.admin == "on",
    )


def _notify(name: str, given: NotifyTargetSection) -> NotifyTarget:
    return copied(NotifyTarget, given, name=name, command=given.command or ())


def _bind(endpoint: Endpoint) -> Bind:
    return Bind(host=endpoint.host, port=endpoint.port)


def _first(given: _Value | None, default: _Value) -> _Value:
    return default if given is None else given
