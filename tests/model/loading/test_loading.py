"""`loading` and `defaults` of `model.snapshot`: from text to a snapshot in which nothing is left open."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from appliance.model.loading.loading import DRAIN_VARIABLE, load
from appliance.model.messages.problems import Problem
from appliance.model.snapshot.frontends import Bind, Frontend, Group, KeepAlive
from appliance.model.snapshot.pools import (
    Balance,
    Check,
    CheckInit,
    CheckStep,
    CheckType,
    OnDown,
    Pool,
    SendProxy,
    Server,
)
from appliance.model.snapshot.snapshot import Log, Reload, Snapshot, Stats, without_secrets
from appliance.model.validation import pydantic_errors

pytestmark = pytest.mark.pure

CHECK = Check(
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
    interval=5.0,
    fast_interval=5.0,
    down_interval=5.0,
    timeout=10.0,
    timeout_connect=5.0,
    rise=2,
    fall=3,
    error_limit=1,
    init=CheckInit.CHECK,
    send_proxy=SendProxy.NONE,
)


def _loaded(text: str, *, drain: str | None = None) -> Snapshot:
    loaded = load(text, source="a.yaml", number=7, drain=drain)
    assert loaded.snapshot is not None, loaded.errors
    return loaded.snapshot


def _pool(settings: str) -> Pool:
    """Return the pool of these settings; a server at 10.0.0.1:1 unless they have servers."""
    servers = "" if "servers" in settings else ", servers: {a: {address: '10.0.0.1:1'}}"
    return _loaded(f"pools: {{ p: {{ {settings}{servers} }} }}").pools[0]


def _frontend(settings: str, *, before: str = "") -> Frontend:
    text = f"api: {{ frontends: {{ f: {{ bind: ['[::]:1'], respond: /, {settings} }} }} }}\n{before}"
    return _loaded(text).groups[0].frontends[0]


def test_nothing_gives_everything():
    """An empty mapping is a whole configuration that serves nothing."""
    assert _loaded("{}") == Snapshot(
        number=7,
        source="a.yaml",
        cluster=None,
        domain=None,
        groups=(),
        pools=(),
        drain=120.0,
        reload=Reload(sockets=(), max_draining=10),
        log=Log(level="info", format="json", connections=False),
    )


def test_the_defaults_of_a_frontend_and_a_pool():
    """What is not said is what OpenShift's HAProxy does, or HAProxy itself."""
    snapshot = _loaded(
        "api: { frontends: { f: { bind: ['[::]:9445'], pool: p } } }\n"
        "pools: { p: { servers: { s: { address: 'master-0:6443' } } } }"
    )

    assert snapshot.groups == (
        Group(
            name="api",
            workers=None,
            frontends=(
                Frontend(
                    name="f",
                    binds=(Bind(host="::", port=9445),),
                    pool="p",
                    respond=None,
                    needs=None,
                    allow=(),
                    deny=(),
                    max_connections=40000,
                    timeout_client=86400.0,
                    timeout_client_fin=1.0,
                    max_age=None,
                    max_age_jitter=0.1,
                    keepalive=KEEPALIVE,
                    tcp_user_timeout=None,
                ),
            ),
        ),
    )
    assert snapshot.pools == (
        Pool(
            name="p",
            balance=Balance.ROUNDROBIN,
            hash_on=("source",),
            slow_start=0.0,
            on_down=OnDown.AUTO,
            panic=0.0,
            send_proxy=SendProxy.NONE,
            retries=3,
            max_queue=0,
            timeout_connect=10.0,
            timeout_queue=60.0,
            timeout_server=86400.0,
            timeout_server_fin=1.0,
            keepalive=KEEPALIVE,
            tcp_user_timeout=None,
            servers=(
                Server(
                    name="s",
                    host="master-0",
                    port=6443,
                    weight=1,
                    backup=False,
                    max_connections=0,
                    check=CHECK,
                ),
            ),
        ),
    )


KEEPALIVE = KeepAlive(idle=60.0, interval=10.0, count=3)
"""Where nothing is said: an idle peer that is gone is found after 90 seconds."""

DEFAULTS = """
defaults:
  max_connections: 5
  timeouts: { connect: 1s, queue: 2s, client: 3s, server: 4s, client_fin: 5s, server_fin: 6s }
  retries: 0
  tcp_user_timeout: 30s
  keepalive: { idle: 7s }
"""


def test_defaults_hold_where_nothing_else_is_said():
    """The section `defaults` fills in frontends and pools."""
    frontend = _frontend("", before=DEFAULTS)
    pool = _loaded("pools: { p: {} }" + DEFAULTS).pools[0]
    keepalive = KeepAlive(idle=7.0, interval=10.0, count=3)

    assert (
        frontend.max_connections,
        frontend.timeout_client,
        frontend.timeout_client_fin,
        frontend.tcp_user_timeout,
        frontend.keepalive,
    ) == (5, 3.0, 5.0, 30.0, keepalive)
    assert (
        pool.timeout_connect,
        pool.timeout_queue,
        pool.timeout_server,
        pool.timeout_server_fin,
        pool.retries,
        pool.tcp_user_timeout,
        pool.keepalive,
    ) == (1.0, 2.0, 4.0, 6.0, 0, 30.0, keepalive)


def test_what_is_said_wins_over_the_defaults():
    """A frontend's own settings hold for it."""
    frontend = _frontend(
        "max_connections: 9, timeouts: {client: 9s}, tcp_user_timeout: 9s, keepalive: off, max_age: 12h",
        before=DEFAULTS,
    )

    assert (
        frontend.max_connections,
        frontend.timeout_client,
        frontend.timeout_client_fin,
        frontend.tcp_user_timeout,
        frontend.keepalive,
        frontend.max_age,
    ) == (9, 9.0, 5.0, 9.0, None, 43200.0)


@pytest.mark.parametrize(
    ("settings", "changed"),
    [
        ("retries: 1", {"type": CheckType.TCP}),
        ("check: {type: https, path: /readyz}", {"type": CheckType.HTTPS, "path": "/readyz"}),
        ("check: {type: https, verify: /ca.pem}", {"verify": "/ca.pem"}),
        ("check: {interval: 2s}", {"interval": 2.0, "fast_interval": 2.0, "down_interval": 2.0}),
        ("check: {fast_interval: 1s}", {"interval": 5.0, "fast_interval": 1.0, "down_interval": 5.0}),
        ("check: {down_interval: 9s}", {"interval": 5.0, "fast_interval": 5.0, "down_interval": 9.0}),
        ("timeouts: {connect: 2s}", {"timeout": 10.0, "timeout_connect": 2.0}),
        ("check: {interval: 1s, fast_interval: 500ms}", {"timeout": 10.0, "timeout_connect": 1.0}),
        ("check: {timeout: 3s, error_limit: 0}", {"timeout": 3.0, "timeout_connect": 5.0, "error_limit": 0}),
        ("check: {init: up, rise: 5}", {"init": CheckInit.UP, "rise": 5}),
        ("check: {type: tls, sni: a.example.com, verify: none}", {"sni": "a.example.com", "verify": None}),
        ("check: {type: http, expect: [200, 404]}", {"expect": ((200, 200), (404, 404))}),
        ("send_proxy: v2", {"send_proxy": SendProxy.V2}),
        ("send_proxy: v2, check: {port: 5}", {"port": 5, "send_proxy": SendProxy.NONE}),
        ("send_proxy: v2, check: {address: 10.0.0.9}", {"address": "10.0.0.9", "send_proxy": SendProxy.NONE}),
        ("send_proxy: v2, check: {port: 5, send_proxy: v1}", {"send_proxy": SendProxy.V1}),
    ],
)  # fmt: skip
def test_checks(settings: str, changed: dict[str, object]):
    """A check is a TCP connection every 5 seconds, but for what is said."""
    check = _pool(settings).servers[0].check

    assert {key: getattr(check, key) for key in changed} == changed


@pytest.mark.parametrize(
    ("pool", "server", "wanted"),
    [
        ("{type: http, path: /a}", "{path: /b}", (CheckType.HTTP, "/b")),
        ("{type: http, path: /a}", "{port: 5}", (CheckType.HTTP, "/a")),
        ("{type: http, path: /a}", "{type: tcp}", (CheckType.TCP, "/a")),
        ("false", "{type: http}", (CheckType.HTTP, "/")),
        ("{type: http}", "false", None),
        ("false", "{}", None),
    ],
)
def test_a_server_says_what_differs(pool: str, server: str, wanted: tuple | None):
    """A server's check is the pool's with the server's keys in their place; false is none."""
    settings = f"check: {pool}, servers: {{ a: {{ address: '10.0.0.1:1', check: {server} }} }}"
    check = _pool(settings).servers[0].check

    assert (check and (check.type, check.path)) == wanted


def test_no_server_of_an_unchecked_pool_is_checked():
    """False for the pool holds for its servers."""
    assert _pool("check: false").servers[0].check is None


def test_a_server_that_has_no_address_yet_is_left_out():
    """One node without an address takes nothing away from the others."""
    servers = '{ to-come: { address: ":6443" }, there: { address: "192.0.2.1:6443" } }'
    loaded = load(f"pools: {{ masters: {{ servers: {servers} }} }}", source="FILE", number=1)

    assert loaded.snapshot is not None
    assert [each.name for each in loaded.snapshot.pools[0].servers] == ["there"]


def test_a_group_without_frontends_is_not_there():
    """A program that has nothing to do is not started."""
    assert _loaded("api: { workers: 2 }\ningress: { frontends: {} }").groups == ()


def test_workers_of_a_group():
    """A number of workers is that number."""
    text = "ingress: { workers: 3, frontends: { f: { bind: ['[::]:1'], respond: / } } }"

    assert _loaded(text).groups[0].workers == 3


def test_without_a_section_for_statistics_there_are_none():
    """Then the program stats has nothing to do."""
    assert _loaded("{}").stats is None


def test_statistics_are_for_this_machine_alone_unless_more_is_said():
    """An empty section serves where OpenShift's HAProxy does, everybody who is there, and changes nothing."""
    assert _loaded("stats: {}").stats == Stats(bind=Bind(host="localhost", port=29445))


def test_everything_that_is_said_of_statistics():
    """All keys of the section reach the program."""
    text = """
    stats:
      bind: "[::1]:80"
      also_bind: ["127.0.0.1:81"]
      uri: ["/haproxy?stats", /]
      respond: /healthz
      needs: p
      auth: { user: admin, password_file: /p }
      tls: { certificate: /c, key: /k }
      allow: [10.0.0.0/8]
      deny: [10.0.0.1]
      socket: /run/h.sock
      admin: on
    pools: { p: { servers: {} } }
    """
    assert _loaded(text).stats == Stats(
        bind=Bind(host="::1", port=80),
        more_binds=(Bind(host="127.0.0.1", port=81),),
        paths=("/haproxy?stats", "/"),
        respond="/healthz",
        needs="p",
        user="admin",
        password_file="/p",  # noqa: S106  # a path
        certificate="/c",
        key="/k",
        allow=("10.0.0.0/8",),
        deny=("10.0.0.1/32",),
        socket="/run/h.sock",
        admin=True,
    )


def test_all_addresses_of_statistics():
    """The first is what the section has always had; the others are beside it."""
    stats = _loaded("stats: { bind: 'localhost:1', also_bind: ['[::1]:2', 'localhost:3'] }").stats

    assert stats is not None
    assert [each.port for each in stats.binds] == [1, 2, 3]


def test_a_password_in_the_configuration():
    """As in HAProxy's `stats auth`; the group that may look is not shown it."""
    made = _loaded("stats: { auth: { user: Username, password: Password } }")
    shown = without_secrets(made).stats

    assert (made.stats and made.stats.password, shown and shown.password) == ("Password", None)


@pytest.mark.parametrize(
    ("settings", "path", "words"),
    [
        ("{ admin: on }", "stats.admin", "needs `auth`"),
        ("{ auth: { user: a } }", "stats.auth", "needs `password_file` or `password`"),
        ("{ auth: { user: a, password: '' } }", "stats.auth.password", "printable characters"),
        ("{ auth: { user: 'a:b', password: p } }", "stats.auth.user", "without a colon"),
        ("{ respond: /x, needs: nobody }", "stats.needs", "unknown pool `nobody`"),
        ("{ needs: p }\npools: { p: { servers: {} } }", "stats.needs", "belongs to `respond`"),
        ("{ also_bind: ['localhost:29445'] }", "stats.also_bind[0]", "is already taken by stats.bind"),
    ],
)
def test_who_may_change_servers_has_said_who_it_is(settings: str, path: str, words: str):
    """A user without a password is a mistake, and so is admin without a user."""
    errors = load(f"stats: {settings}", source="a.yaml", number=7).errors

    assert [words in each.message for each in errors if str(each.path) == path] == [True]


@pytest.mark.parametrize(
    ("settings", "paths"),
    [
        ("{ bind: 'localhost:1' }", []),
        ("{ bind: '127.0.0.1:1', auth: { user: a, password: b } }", []),
        ("{ bind: '[::]:1' }", ["stats.bind"]),
        ("{ also_bind: ['[::]:1', 'localhost:2'] }", ["stats.also_bind[0]"]),
        ("{ bind: 'lb.example.com:1', allow: [10.0.0.0/8] }", []),
        ("{ bind: '[::]:1', auth: { user: a, password: b } }", ["stats.auth"]),
        ("{ bind: '[::]:1', auth: { user: a, password: b }, tls: { certificate: /c, key: /k } }", []),
    ],
)
def test_what_is_seen_from_elsewhere_is_warned_of(settings: str, paths: list[str]):
    """Servers are shown to everybody, or the password crosses the network, only where that is wanted."""
    loaded = load(f"stats: {settings}", source="a.yaml", number=7)

    assert [str(each.path) for each in loaded.warnings] == paths


@pytest.mark.parametrize(
    ("text", "outside", "drain"),
    [
        ("{}", None, 120.0),
        ("{}", "", 120.0),
        ("{}", "30", 30.0),
        ("defaults: {drain: 5m}", None, 300.0),
        ("defaults: {drain: 5m}", "0", 0.0),
    ],
)
def test_the_drain_time_of_the_pod_wins(text: str, outside: str | None, drain: float):
    """OLD_HAPROXY_PS_FORCE_DEL_TIMEOUT holds where it is set, whatever the file says."""
    assert _loaded(text, drain=outside).drain == drain


@pytest.mark.parametrize("text", ["{}", "- a"])
@pytest.mark.parametrize("outside", ["2m", "-1", "1.5", "\uff19", "9" * 9])
def test_a_bad_drain_time_is_told_beside_what_the_file_has(text: str, outside: str):
    """A value that is no whole number of seconds is an error that names the variable."""
    loaded = load(text, source="a.yaml", number=1, drain=outside)

    assert (loaded.snapshot, loaded.errors[0], len(loaded.errors)) == (
        None,
        Problem(path=DRAIN_VARIABLE, message=f"must be whole seconds such as `120`, not `{outside}`"),
        1 if text == "{}" else 2,
    )


def test_what_cannot_be_read_is_the_only_problem():
    """A file that is no document is one problem, with its place."""
    loaded = load(b"a: 1\na: 2", source="a.yaml", number=1)

    assert [str(each) for each in loaded.problems] == [
        "a.yaml:2:1: `a` is given twice: the first is on line 1"
    ]


WORDS = st.sampled_from(
    ["api", "pools", "frontends", "servers", "check", "bind", "pool", "masters", "type", "[key]", "address"]
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | WORDS,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(WORDS, below, max_size=3),
    max_leaves=30,
)
SHAPED = st.fixed_dictionaries(
    {},
    optional={
        "api": st.fixed_dictionaries({"frontends": st.dictionaries(WORDS, ANYTHING, max_size=3)}) | ANYTHING,
        "pools": st.dictionaries(
            WORDS,
            st.fixed_dictionaries({}, optional={"servers": ANYTHING, "check": ANYTHING}) | ANYTHING,
            max_size=3,
        ),
        "defaults": ANYTHING,
        "virtual_ips": st.dictionaries(
            st.sampled_from(["api", "b"]),
            st.fixed_dictionaries(
                {"addresses": st.just(["10.0.0.1/24"]) | ANYTHING, "interface": st.just("e") | ANYTHING},
                optional={"router_id": st.just(1) | ANYTHING, "track": ANYTHING, "auth": ANYTHING},
            )
            | ANYTHING,
            max_size=2,
        ),
        "[key]": ANYTHING,
    },
)


@given(SHAPED | ANYTHING)
def test_garbage_never_escapes(value: object):
    """Whatever a file says, the outcome is a snapshot or errors, each with a place."""
    loaded = load(_yaml(value), source="a.yaml", number=1)

    assert (loaded.snapshot is None) == bool(loaded.errors)
    assert all(each.line is not None and each.column is not None for each in loaded.problems)


def _yaml(value: object) -> str:
    """Return a value as flow YAML, its texts in quotes."""
    match value:
        case dict():
            return "{" + ", ".join(f"{_yaml(key)}: {_yaml(below)}" for key, below in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(_yaml, value)) + "]"
        case str():
            return (
                "'" + "".join(each if each.isprintable() else "?" for each in value).replace("'", "''") + "'"
            )
        case None | True | False:
            return {None: "null", True: "true", False: "false"}[value]
    return str(value)


def test_a_fault_without_words_of_ours_is_told_in_pydantics():
    """A kind of fault that a later pydantic invents is still told."""
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(float).validate_python("x", strict=True)

    assert [each.message for each in pydantic_errors.findings(caught.value)] == [
        "Input should be a valid number"
    ]


FURTHER = """
pools:
  p:
    send_proxy: v1
    check:
      type: https
      path: /a
      host: a.example.com
      expect_body: a
      verify: /etc/ca.pem
      timeout: 3s
      reuse: true
      also:
        b: { path: /b, expect_digest: 444BCB3A3FCF8389296C49467F27E1D6 }
        c: { type: tcp, port: 80, steps: [{ expect: hello }] }
        d: { type: tls, address: 10.0.0.9, verify: none, send_proxy: v2 }
    servers: { s: { address: "10.0.0.1:1" } }
"""


def test_further_checks_go_where_the_first_one_goes():
    """They have its type, certificates and times; what they request and expect is their own."""
    first = _loaded(FURTHER).pools[0].servers[0].check
    assert first is not None
    b, c, d = (each for _, each in first.also)
    digest = "444bcb3a3fcf8389296c49467f27e1d6"

    assert first.whole == (first, b, c, d)
    assert b == replace(first, path="/b", host=None, expect_body=None, expect_digest=digest, also=())
    assert (c.type, c.port, c.send_proxy, c.reuse) == (CheckType.TCP, 80, SendProxy.NONE, False)
    assert (c.steps, c.expect_body, c.timeout) == ((CheckStep(expect="hello"),), None, 3.0)
    assert (d.type, d.address, d.verify, d.send_proxy) == (CheckType.TLS, "10.0.0.9", None, SendProxy.V2)
