"""Snapshots for tests: builders with sensible defaults, and hypothesis strategies.

A builder takes the fields to change by name: `server("a", port=81)`, `pool("p", servers=[server("a")])`.
A strategy draws snapshots that hold together: names are unique and every pool that is named exists.
"""

from collections.abc import Iterable
from dataclasses import replace

from hypothesis import strategies as st

from appliance.model.snapshot.frontends import Bind, Frontend, Group, KeepAlive, Redirect, RedirectWhen
from appliance.model.snapshot.pools import (
    SOURCE_PORTS,
    Balance,
    Check,
    CheckInit,
    CheckStep,
    CheckType,
    OnDown,
    OnUp,
    Pool,
    SendProxy,
    Server,
    SourceAddress,
)
from appliance.model.snapshot.snapshot import Log, Reload, Snapshot
from appliance.model.snapshot.virtual_router import (
    AnnounceSettings,
    Checksum,
    Hmac,
    HmacKey,
    HmacMode,
    Notify,
    OnConflict,
    Track,
    TrackKind,
    VirtualRouter,
)

_CHECK = Check(
    type=CheckType.TCP,
    method="GET",
    path="/",
    host=None,
    expect=((200, 399),),
    expect_body=None,
    sni=None,
    verify=None,
    address=None,
    port=None,
    interval=1.0,
    fast_interval=0.5,
    down_interval=1.0,
    timeout=1.0,
    timeout_connect=60.0,
    rise=2,
    fall=3,
    error_limit=1,
    init=CheckInit.CHECK,
    send_proxy=SendProxy.NONE,
)
_SERVER = Server(
    name="server-0", host="127.0.0.1", port=8080, weight=1, backup=False, max_connections=0, check=None
)
_POOL = Pool(
    name="pool",
    balance=Balance.ROUNDROBIN,
    hash_on=("source",),
    slow_start=0.0,
    on_down=OnDown.KEEP,
    panic=0.0,
    send_proxy=SendProxy.NONE,
    retries=3,
    max_queue=0,
    timeout_connect=5.0,
    timeout_queue=5.0,
    timeout_server=60.0,
    timeout_server_fin=1.0,
    keepalive=None,
    tcp_user_timeout=None,
    servers=(_SERVER,),
)
_FRONTEND = Frontend(
    name="frontend",
    binds=(Bind(host="127.0.0.1", port=9445),),
    pool="pool",
    respond=None,
    needs=None,
    allow=(),
    deny=(),
    max_connections=1000,
    timeout_client=60.0,
    timeout_client_fin=1.0,
    max_age=None,
    max_age_jitter=0.0,
    keepalive=None,
    tcp_user_timeout=None,
)
_REDIRECT = Redirect(
    sources=(Bind(host="10.0.0.200", port=6443),),
    when=RedirectWhen.READY,
    interval=6.0,
    rise=3,
    fall=11,
)
_TRACK = Track(
    name="ready",
    kind=TrackKind.TCP,
    target="127.0.0.1:6443",
    arguments=(),
    weight=None,
    interval=1.0,
    timeout=1.0,
    rise=1,
    fall=1,
    user=None,
    verify=None,
    expect=((200, 399),),
)
_VIRTUAL_ROUTER = VirtualRouter(
    name="api",
    interface="eth0",
    family=4,
    addresses=("192.0.2.200/24",),
    version=2,
    router_id=51,
    priority=100,
    advert=1.0,
    peers=(),
    source=None,
    min_ttl=1,
    password=None,
    hmac=None,
    checksum=Checksum.PSEUDO_HEADER,
    preempt=True,
    preempt_delay=0.0,
    down_timer_adverts=3,
    listen=3.6,
    hand_over=3.0,
    on_conflict=OnConflict.WARN,
    sync_group=None,
    virtual_mac=False,
    label=None,
    announce=AnnounceSettings(repeat=5, delay=5.0, refresh=0.0, refresh_repeat=1, reply=False),
    track=(),
    notify=Notify(active=(), backup=(), fault=(), stop=(), any=(), user=None, timeout=30.0),
)
_SNAPSHOT = Snapshot(
    number=1,
    source="appliance.yaml",
    cluster=None,
    domain=None,
    groups=(Group(name="api", workers=1, frontends=(_FRONTEND,)),),
    pools=(_POOL,),
    drain=5.0,
    reload=Reload(sockets=(), max_draining=10),
    log=Log(level="info", format="json", connections=False),
)


def bind(port: int, *, host: str = "127.0.0.1") -> Bind:
    """Return an address to listen on."""
    return Bind(host=host, port=port)


def check(type: str | CheckType = CheckType.TCP, **changes: object) -> Check:  # noqa: A002  # the key's name
    """Return a check: every second, half a second in between states, two up, three down."""
    return replace(_CHECK, type=CheckType(type), **changes)


def server(name: str = "server-0", *, port: int = 8080, **changes: object) -> Server:
    """Return a server on 127.0.0.1, unchecked and without limit."""
    return replace(_SERVER, name=name, port=port, **changes)


def pool(name: str = "pool", *, servers: Iterable[Server] = (_SERVER,), **changes: object) -> Pool:
    """Return a roundrobin pool of one server on 127.0.0.1:8080."""
    return replace(_POOL, name=name, servers=tuple(servers), **changes)


def redirect(**changes: object) -> Redirect:
    """Return a redirect of one address, as OpenShift has it."""
    return replace(_REDIRECT, **changes)  # type: ignore[arg-type]  # the test's own fields


def frontend(name: str = "frontend", *, binds: Iterable[Bind] | None = None, **changes: object) -> Frontend:
    """Return a frontend on 127.0.0.1:9445 for the pool `pool`; `respond` alone takes the pool away."""
    if changes.get("respond"):
        changes.setdefault("pool", None)
    if binds is not None:
        changes["binds"] = tuple(binds)
    return replace(_FRONTEND, name=name, **changes)


def group(
    name: str = "api", *, frontends: Iterable[Frontend] = (_FRONTEND,), workers: int | None = 1
) -> Group:
    """Return a group of one frontend and one worker."""
    return Group(name=name, workers=workers, frontends=tuple(frontends))


def track(name: str = "ready", **changes: object) -> Track:
    """Return a tracked TCP port, without weight."""
    return replace(_TRACK, name=name, **changes)


def virtual_router(name: str = "api", **changes: object) -> VirtualRouter:
    """Return a virtual router: version 2 by multicast, id 51, 192.0.2.200/24 on eth0, once a second."""
    return replace(_VIRTUAL_ROUTER, name=name, **changes)


def snapshot(**changes: object) -> Snapshot:
    """Return a snapshot: group `api`, frontend `frontend` on 127.0.0.1:9445, pool `pool`, one server."""
    for name in ("groups", "pools", "virtual_routers"):
        if name in changes:
            changes[name] = tuple(changes[name])
    return replace(_SNAPSHOT, **changes)


names = st.sampled_from(["a", "b", "c", "master-0", "master-1", "kube-api"])
ports = st.integers(1, 65535)
hosts = st.sampled_from(["127.0.0.1", "10.0.0.1", "10.0.0.2", "::", "2001:db8::1", "masters.example.com"])
seconds = st.sampled_from([0.3, 1.0, 2.0, 60.0, 86400.0])
binds = st.builds(Bind, host=hosts, port=ports)
keepalives = st.none() | st.builds(KeepAlive, idle=seconds, interval=seconds, count=st.integers(1, 9))
networks = st.lists(st.sampled_from(["10.0.0.0/8", "192.0.2.1/32", "2001:db8::/32"]), max_size=2).map(tuple)
checks = st.builds(
    Check,
    type=st.sampled_from(CheckType),
    method=st.sampled_from(["GET", "HEAD"]),
    path=st.sampled_from(["/", "/readyz"]),
    host=st.none() | hosts,
    expect=st.sampled_from([((200, 399),), ((200, 200), (404, 404))]),
    expect_body=st.none() | st.just("ok"),
    sni=st.none() | hosts,
    verify=st.none() | st.just("/etc/ca.pem"),
    address=st.none() | hosts,
    port=st.none() | ports,
    interval=seconds,
    fast_interval=seconds,
    down_interval=seconds,
    timeout=seconds,
    timeout_connect=seconds,
    rise=st.integers(1, 9),
    fall=st.integers(1, 9),
    error_limit=st.integers(0, 9),
    init=st.sampled_from(CheckInit),
    send_proxy=st.sampled_from(SendProxy),
    reuse=st.booleans(),
    steps=st.sampled_from([(), (CheckStep(expect="+OK"), CheckStep(expect_rstring="^x", negate=True))]),
    expect_digest=st.sampled_from(["", "444bcb3a3fcf8389296c49467f27e1d6"]),
    also=st.sampled_from([(), (("second", _CHECK),)]),
)


def _named(values: st.SearchStrategy, *, min_size: int = 0, max_size: int = 3) -> st.SearchStrategy:
    return st.lists(values, min_size=min_size, max_size=max_size, unique_by=lambda each: each.name).map(tuple)


servers = st.builds(
    Server,
    name=names,
    host=hosts,
    port=ports,
    weight=st.integers(0, 256),
    backup=st.booleans(),
    max_connections=st.integers(0, 100),
    check=st.none() | checks,
)
pools = st.builds(
    Pool,
    name=names,
    balance=st.sampled_from(Balance),
    hash_on=st.sampled_from([("source",), ("source", "destination-port")]),
    slow_start=st.just(0.0) | seconds,
    on_down=st.sampled_from(OnDown),
    on_up=st.sampled_from(OnUp),
    all_backups=st.booleans(),
    panic=st.sampled_from([0.0, 0.3, 1.0]),
    send_proxy=st.sampled_from(SendProxy),
    retries=st.integers(0, 5),
    max_queue=st.integers(0, 100),
    timeout_connect=seconds,
    timeout_queue=seconds,
    timeout_server=seconds,
    timeout_server_fin=seconds,
    keepalive=keepalives,
    tcp_user_timeout=st.none() | seconds,
    servers=_named(servers),
    source=st.sampled_from(SourceAddress),
    source_ports=st.sampled_from([SOURCE_PORTS, (20000, 29999)]),
)


tracks = st.builds(
    Track,
    name=names,
    kind=st.sampled_from(TrackKind),
    target=st.sampled_from(["http://localhost/", "/bin/true", "eth1"]),
    arguments=st.sampled_from([(), ("-q",)]),
    weight=st.none() | st.integers(-253, 253),
    interval=seconds,
    timeout=seconds,
    rise=st.integers(1, 9),
    fall=st.integers(1, 9),
    user=st.none() | st.just("nobody"),
    verify=st.none() | st.just("/etc/ca.pem"),
    expect=st.just(((200, 399),)),
)
words = st.sampled_from([(), ("/bin/true",), ("/bin/echo", "a b")])
hmacs = st.builds(
    Hmac,
    keys=st.just((HmacKey(id=1, secret="00" * 32),)),
    send=st.just(1),
    mode=st.sampled_from(HmacMode),
    time_window=seconds,
)
virtual_routers = st.builds(
    VirtualRouter,
    name=names,
    interface=st.sampled_from(["eth0", "eth1"]),
    family=st.sampled_from([4, 6]),
    addresses=st.sampled_from([("192.0.2.200/24",), ("2001:db8::200/64", "2001:db8::201/64")]),
    version=st.sampled_from([2, 3]),
    router_id=st.integers(1, 255),
    priority=st.integers(1, 255),
    advert=seconds,
    peers=st.sampled_from([(), ("192.0.2.1", "192.0.2.2")]),
    source=st.none() | st.just("192.0.2.3"),
    min_ttl=st.integers(1, 255),
    password=st.none() | st.just("secret"),
    hmac=st.none() | hmacs,
    checksum=st.sampled_from(Checksum),
    preempt=st.booleans(),
    preempt_delay=seconds,
    down_timer_adverts=st.integers(1, 9),
    listen=seconds,
    hand_over=seconds,
    on_conflict=st.sampled_from(OnConflict),
    sync_group=st.none() | st.just("both"),
    virtual_mac=st.booleans(),
    label=st.none() | st.just("eth0:vip"),
    announce=st.builds(
        AnnounceSettings,
        repeat=st.integers(1, 9),
        delay=seconds,
        refresh=seconds,
        refresh_repeat=st.integers(1, 9),
        reply=st.booleans(),
    ),
    track=_named(tracks, max_size=2),
    notify=st.builds(
        Notify,
        active=words,
        backup=words,
        fault=words,
        stop=words,
        any=words,
        user=st.none() | st.just("nobody"),
        timeout=seconds,
    ),
)


@st.composite
def frontends(draw: st.DrawFn, *, pool_names: tuple[str, ...]) -> Frontend:
    """Draw a frontend that forwards to one of the pools, or answers by itself."""
    chosen = draw(st.sampled_from([None, *pool_names]))
    needed = st.sampled_from([None, *pool_names]) if chosen is None else st.none()
    return Frontend(
        name=draw(names),
        binds=draw(st.lists(binds, min_size=1, max_size=2, unique=True).map(tuple)),
        pool=chosen,
        respond="/haproxy_ready" if chosen is None else None,
        needs=draw(needed),
        allow=draw(networks),
        deny=draw(networks),
        max_connections=draw(st.integers(1, 40000)),
        timeout_client=draw(seconds),
        timeout_client_fin=draw(seconds),
        max_age=draw(st.none() | seconds),
        max_age_jitter=draw(st.sampled_from([0.0, 0.1])),
        keepalive=draw(keepalives),
        tcp_user_timeout=draw(st.none() | seconds),
    )


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    """Draw a snapshot whose cross-references hold."""
    drawn_pools = draw(_named(pools))
    pool_names = tuple(each.name for each in drawn_pools)
    group_names = draw(st.lists(st.sampled_from(["api", "ingress"]), unique=True))
    return Snapshot(
        number=draw(st.integers(1, 1000)),
        source=draw(st.sampled_from(["appliance.yaml", "/etc/appliance/appliance.yaml"])),
        cluster=draw(st.none() | st.just("ocp4")),
        domain=draw(st.none() | st.just("example.com")),
        groups=tuple(
            Group(
                name=each,
                workers=draw(st.none() | st.integers(1, 4)),
                frontends=draw(_named(frontends(pool_names=pool_names))),
            )
            for each in group_names
        ),
        pools=drawn_pools,
        drain=draw(seconds),
        reload=draw(
            st.builds(
                Reload,
                sockets=st.sampled_from([(), ("/run/haproxy-master.sock",)]),
                max_draining=st.integers(1, 10),
            )
        ),
        log=draw(
            st.builds(
                Log,
                level=st.sampled_from(["debug", "info", "warning", "error"]),
                format=st.sampled_from(["json", "console"]),
                connections=st.booleans(),
            )
        ),
        virtual_routers=draw(_named(virtual_routers, max_size=2)),
        watchdog=draw(seconds),
    )
