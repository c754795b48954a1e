"""What sections become: frontends, pools, answers, statistics, or nothing."""

import pytest
from support.translation.haproxy_files import TIMES, Read, frontend, read

from appliance.translation.haproxy.directives.sections import MOST_SECTIONS
from appliance.translation.translation import Outcome

pytestmark = pytest.mark.pure

SERVER = "  server s 10.0.0.1:1\n"
HTTP = f"{TIMES}  mode http\n"


def test_groups():
    """Who has port 80 or 443, or shares servers with one who has, is in `ingress`."""
    found = read(
        f"{TIMES}frontend a\n  bind *:80\n  default_backend r\nfrontend b\n  bind *:8080\n"
        "  default_backend r\n"
        f"frontend c\n  bind *:6443\n  default_backend m\nbackend r\n{SERVER}backend m\n{SERVER}"
        "frontend d\n  bind *:443\n  mode http\n  monitor-uri /x\n"
    )
    assert found.config.ingress is not None
    assert found.config.api is not None
    assert list(found.config.ingress.frontends) == ["a", "b", "d"]
    assert list(found.config.api.frontends) == ["c"]


def test_programs_beside_the_proxy():
    """A `program`, such as the Data Plane API, is no reason not to serve what the file has besides."""
    found = read(
        f"program api\n  command dataplaneapi -f /etc/x.hcl\n  no option start-on-reload\n{TIMES}"
        f"listen l\n  bind *:6443\n{SERVER}"
    )
    assert (found.refused, list(found.config.pools)) == ([], ["l"])
    lines = [*found.lines("program"), *found.lines("command"), *found.lines("no option")]
    assert [(each.outcome, "systemd" in str(each.reason)) for each in lines] == [(Outcome.IGNORED, True)] * 3


@pytest.mark.parametrize("header", ["listen a/b", "listen", "listen twice"])
def test_a_section_whose_header_is_refused(header: str):
    """Nothing of it is served, and so none of its lines is kept."""
    found = read(f"{TIMES}listen twice\n  bind *:1\n{SERVER}{header}\n  bind *:2\n{SERVER}")
    assert [each[:3] for each in found.refused] == ["8:8"] if header != "listen" else ["8:1"]
    assert [each.outcome for each in found.found.lines if each.place.line > 8] == [Outcome.IGNORED] * 2
    assert list(found.config.pools) == ["twice"]


def test_answers():
    """A frontend in http with `monitor-uri` alone answers; `monitor fail` is the pool that it needs."""
    found = read(
        f"{TIMES}frontend f\n  mode http\n  bind *:1\n  monitor-uri /ready\n"
        f"  monitor fail if {{ nbsrv(b) lt 1 }}\n"
        f"backend b\n{SERVER}"
    )
    assert found.refused == []
    assert (found.frontend().respond, found.frontend().needs) == ("/ready", "b")
    given = read(f"{HTTP}  monitor-uri /y\nfrontend f\n  bind *:1\n")
    assert given.frontend().respond == "/y"
    listen = read(f"{TIMES}listen l\n  mode http\n  bind *:1\n  monitor-uri /x\n")
    assert listen.frontend("l").respond == "/x"
    assert "l" not in listen.config.pools


@pytest.mark.parametrize(
    "rule",
    [
        "if { nbsrv(b) lt 1 }",
        "if { nbsrv(b) eq 0 }",
        "if { nbsrv(b) le 0 }",
        "unless { nbsrv(b) ge 1 }",
        "unless { nbsrv(b) gt 0 }",
        "if dead",
    ],
)
def test_ways_to_need_a_pool(rule: str):
    """They all mean that one server must be up."""
    found = read(
        f"{TIMES}frontend f\n  mode http\n  bind *:1\n  acl dead nbsrv(b) lt 1\n  monitor-uri /x\n"
        f"  monitor fail {rule}\nbackend b\n{SERVER}"
    )
    assert found.refused == []
    assert found.frontend().needs == "b"


@pytest.mark.parametrize(
    ("rules", "refused"),
    [
        (["if { nbsrv(b) lt 2 }"], "only `monitor fail if { nbsrv(BACKEND) lt 1 }` is supported"),
        (["if { nbsrv(b) }"], "only `monitor fail if { nbsrv(BACKEND) lt 1 }` is supported"),
        (["if { avg_queue(b) lt 1 }"], "only `monitor fail if { nbsrv(BACKEND) lt 1 }` is supported"),
        (["if unknown"], "only `monitor fail if { nbsrv(BACKEND) lt 1 }` is supported"),
        ([""], "only `monitor fail if { nbsrv(BACKEND) lt 1 }` is supported"),
        (["if { nbsrv(nowhere) lt 1 }"], "there is no backend `nowhere`"),
        (["if { nbsrv lt 1 }"], "there is no backend `` with servers"),
        (["if { nbsrv(b) lt 1 }", "if { nbsrv(c) lt 1 }"], "an answer depends on one pool"),
    ],
)
def test_what_an_answer_cannot_need(rules: list[str], refused: str):
    """It is refused, with what can be said."""
    body = "".join(f"  monitor fail {each}\n" for each in rules)
    found = read(
        f"{TIMES}frontend f\n  mode http\n  bind *:1\n  monitor-uri /x\n{body}backend b\n"
        f"{SERVER}backend c\n{SERVER}"
    )
    assert refused in found.refused[0]


def test_a_path_that_cannot_be():
    """It is refused at its place."""
    assert (
        read(f"{TIMES}frontend f\n  mode http\n  bind *:1\n  monitor-uri x\n").refused[0].startswith("8:15: ")
    )
    assert read(f"{TIMES}frontend f\n  mode http\n  bind *:1\n  monitor-uri\n").refused


def test_what_only_http_answers():
    """HAProxy does not answer a monitor in tcp either."""
    found = frontend("monitor-uri /x", "monitor fail if { nbsrv(b) lt 1 }")
    assert {each.outcome for each in found.lines("monitor")} == {Outcome.IGNORED}


def test_http_is_refused_by_name():
    """The section is refused, with the line that says it: its own or that of its defaults."""
    inherited = read(f"{HTTP}frontend f\n  bind *:1\n  default_backend b\nbackend b\n{SERVER}")
    assert [each.partition(": HTTP")[0] for each in inherited.refused] == [
        "6:10: the frontend `f` runs in `mode http` (line 5)",
        "9:9: the backend `b` runs in `mode http` (line 5)",
    ]
    own = read(f"{TIMES}listen l\n  mode http\n  bind *:1\n{SERVER}")
    assert own.refused[0].startswith("5:8: the listen `l` runs in `mode http` (line 6): HTTP is not read")
    assert read(f"{HTTP}frontend f\n  bind *:1\n").refused
    assert read(f"{TIMES}listen l\n  mode health\n").refused[0].startswith("6:8: the mode `health`")


def test_http_that_is_overridden():
    """`mode http` in `defaults` is nothing where every section says `mode tcp`."""
    found = read(f"{HTTP}listen l\n  mode tcp\n  bind *:1\n{SERVER}")
    assert found.refused == []
    assert found.outcome("mode http") is Outcome.IGNORED


def test_statistics():
    """Their address is a key of ours; how they are shown is ours."""
    found = read(
        f"{TIMES}listen stats\n  mode http\n  bind *:9000\n  stats enable\n  stats uri /\n"
        "  stats refresh 5s\n"
    )
    assert found.refused == []
    assert found.config.stats is not None
    assert str(found.config.stats.bind) == "0.0.0.0:9000"
    assert found.outcome("stats refresh") is Outcome.CHANGED
    backend = read(
        f"{TIMES}frontend f\n  mode http\n  bind *:9000\n  default_backend s\nbackend s\n"
        "  mode http\n  stats enable\n"
    )
    assert backend.refused == []
    assert backend.config.stats is not None
    assert backend.config.pools == {}
    unused = read(f"{TIMES}backend s\n  mode http\n  stats enable\n")
    assert unused.config.stats is None
    assert unused.outcome("stats enable") is Outcome.IGNORED


def test_statistics_in_tcp():
    """HAProxy shows none there, and neither do we; nothing is said of an address that nobody has."""
    found = read(f"{TIMES}listen l\n  bind *:1\n  stats uri /x\n  stats auth a:b\n  stats enable\n{SERVER}")
    assert found.config.stats is None
    for words in ("stats uri", "stats auth"):
        assert found.outcome(words) is Outcome.IGNORED
        assert "only in `mode http`" in str(found.line(words).reason)


def statistics(*lines: str) -> Read:
    """Return what a section with statistics at port 9000 becomes."""
    body = "".join(f"  {each}\n" for each in lines)
    return read(f"{TIMES}listen s\n  mode http\n  bind *:9000\n  stats enable\n{body}")


def test_who_may_look():
    """A user with a password, and networks, are keys of ours."""
    found = statistics("stats auth admin:s3:cret", "tcp-request connection reject unless { src 10.0.0.0/8 }")
    assert found.refused == []
    stats = found.config.stats
    assert stats is not None
    assert stats.auth is not None
    assert (stats.auth.user, stats.auth.password) == ("admin", "s3:cret")
    assert stats.allow == ("10.0.0.0/8",)
    assert str(stats.bind) == "0.0.0.0:9000"


FRONT = f"{HTTP}frontend f\n  bind *:9000\n"


@pytest.mark.parametrize(
    "text",
    [
        f"{FRONT}  stats auth admin:s3cret\n",
        f"{HTTP}listen f\n  bind *:9000\n  stats auth admin:s3cret\n",
        f"{FRONT}  default_backend s\nbackend s\n  stats auth admin:s3cret\n",
        f"{FRONT}  use_backend s\nbackend s\n  stats auth admin:s3cret\n  stats enable\n",
        f"{FRONT}  default_backend s\n  stats uri /x\nbackend s\n  stats auth admin:s3cret\n",
        f"{FRONT}  default_backend s\n  stats auth admin:s3cret\nbackend s\n  stats uri /x\n",
        f"{FRONT}  default_backend s\nlisten s\n  bind *:9001\n  stats auth admin:s3cret\n",
        f"{HTTP}  stats auth admin:s3cret\nfrontend f\n  bind *:9000\n",
        f"{HTTP}  stats auth admin:s3cret\nfrontend f\n  bind *:9000\n  stats uri /x\n",
        f"{HTTP}  stats auth admin:s3cret\nfrontend f\n  bind *:9000\n  default_backend s\nbackend s\n",
        f"{FRONT}  stats auth admin:s3cret\n  stats auth other:one\n",
        f"{FRONT}  monitor-uri /x\n  stats auth admin:s3cret\n",
        f"{FRONT}  monitor-uri /x\n  default_backend s\nbackend s\n  stats auth admin:s3cret\n",
    ],
)
def test_a_password_closes_the_page_wherever_it_stands(text: str):
    """In a frontend, its backend, a `listen` and their `defaults`, beside a monitor too."""
    found = read(text)
    assert found.refused == []
    stats = found.config.stats
    assert stats is not None
    assert stats.auth is not None
    assert (str(stats.bind), stats.auth.user, stats.auth.password) == ("0.0.0.0:9000", "admin", "s3cret")


@pytest.mark.parametrize("line", ["stats auth admin", "stats auth :x", 'stats auth "admin:$NOT_SET"'])
def test_a_password_that_is_refused_closes_the_page(line: str):
    """Then there is none, in a frontend as in its backend."""
    for text in (
        f"{FRONT}  stats enable\n  {line}\n",
        f"{FRONT}  default_backend s\nbackend s\n  stats enable\n  {line}\n",
        f"{HTTP}  {line}\nfrontend f\n  bind *:9000\n  stats enable\n",
    ):
        found = read(text)
        assert len(found.refused) == 1
        assert found.config.stats is None
        assert found.outcome("bind") is Outcome.IGNORED


@pytest.mark.parametrize(
    "line",
    [
        "stats http-request auth unless x",
        "stats http-request deny if { http_auth(L) }",
        "http-request deny unless x",
        "http-request auth realm r unless x",
        "http-request redirect location / unless x",
        "stats scope .",
    ],
)
def test_guarded_statistics(line: str):
    """Nobody sees what the file would not show: what our keys cannot ask leaves the page out, with a word."""
    behind = read(f"{FRONT}  default_backend s\nbackend s\n  stats enable\n  {line}\n")
    for found in (statistics(line), behind):
        assert found.refused == []
        assert found.config.stats is None
        assert "the statistics are left out" in str(found.line("bind").reason)
        assert Outcome.CHANGED in {each.outcome for each in found.found.lines}


def test_guarded_statistics_beside_an_answer():
    """The page is left out, and the answer stays, for everybody, as HAProxy answers it."""
    for line in ("http-request deny unless { src 10.0.0.0/8 }", "http-request auth"):
        found = statistics("monitor-uri /x", line)
        assert found.refused == []
        assert found.config.stats is None
        assert found.frontend("s").respond == "/x"
        assert found.outcome("stats enable") is Outcome.CHANGED


@pytest.mark.parametrize(
    ("lines", "allow", "deny"),
    [
        (["tcp-request connection reject if { src 10.0.0.1 }"], (), ("10.0.0.1/32",)),
        (["http-request deny if { src 10.0.0.1 }"], (), ("10.0.0.1/32",)),
        (["http-request deny deny_status 404 if !{ src 10.0.0.0/8 }"], ("10.0.0.0/8",), ()),
        (["stats http-request allow if { src 10.0.0.0/8 }", "stats http-request deny"], ("10.0.0.0/8",), ()),
        (
            [
                "tcp-request content reject unless { src 10.0.0.0/8 }",
                "http-request tarpit if { src 10.0.0.1 }",
            ],
            ("10.0.0.0/8",),
            ("10.0.0.1/32",),
        ),
        (["http-request allow if { path /x }"], (), ()),
    ],
)
def test_networks_that_may_look(lines: list[str], allow: tuple[str, ...], deny: tuple[str, ...]):
    """Rules of TCP and of HTTP by `src` are lists of ours."""
    found = statistics(*lines)
    assert found.refused == []
    stats = found.config.stats
    assert stats is not None
    assert (stats.allow, stats.deny) == (allow, deny)


def test_nobody_who_may_look():
    """Then there is no page."""
    for lines in (
        ["tcp-request connection reject"],
        [
            "tcp-request connection reject unless { src 10.0.0.0/8 }",
            "http-request deny unless { src 192.0.2.0/24 }",
        ],
    ):
        found = statistics(*lines)
        assert len(found.refused) == 1
        assert found.config.stats is None
    answer = read(f"{FRONT}  monitor-uri /x\n  tcp-request content reject\n")
    assert answer.config.api is None


def test_requests_that_guard_nothing():
    """They are for HTTP."""
    found = statistics("http-request use-service prometheus-exporter if { path /metrics }")
    assert found.outcome("http-request") is Outcome.IGNORED
    assert found.config.stats is not None
    assert str(found.config.stats.bind) == "0.0.0.0:9000"


def test_several_statistics():
    """The page is at each address and path that the file names, for one user and one list of clients."""
    found = read(
        f"{HTTP}listen a\n  bind *:9000,*:9001\n  stats enable\nlisten b\n  bind *:9002\n  stats uri /x\n"
        "frontend c\n  bind *:9003\n  stats uri /haproxy?stats\n  default_backend d\n"
        "backend d\n  stats uri /\n"
        "listen e\n  bind *:9004\n  stats auth a:b\nlisten g\n  bind *:9005\n  stats uri x\n"
    )
    stats = found.config.stats
    assert stats is not None
    assert str(stats.bind) == "0.0.0.0:9000"
    assert [each.port for each in stats.also_bind] == [9001, 9002, 9003, 9005]
    assert stats.uri == ("/x", "/haproxy?stats", "/")
    assert stats.auth is None
    assert found.outcome("listen e") is Outcome.CHANGED
    assert found.refused == ["23:13: must be a path such as `/readyz`, without spaces, not `x`"]


def test_statistics_beside_an_answer():
    """Both are at the address that the file says, where the answer needs no password."""
    listen = "listen a\n  bind *:9000\n  stats enable\n  monitor-uri /healthz\n"
    text = f"{HTTP}backend b\n  mode tcp\n{SERVER}{listen}"
    found = read(text)
    assert found.refused == []
    assert found.config.api is None
    assert found.config.stats is not None
    assert (str(found.config.stats.bind), found.config.stats.respond) == ("0.0.0.0:9000", "/healthz")
    assert found.outcome("monitor-uri") is Outcome.KEPT
    needy = read(f"{text}  acl dead nbsrv(b) lt 1\n  monitor fail if dead\n")
    assert needy.config.stats is not None
    assert needy.config.stats.needs == "b"
    assert needy.outcome("acl") is Outcome.KEPT
    again = read(f"{text}listen c\n  bind *:9001\n  stats enable\n  monitor-uri /healthz\n")
    assert again.refused == []
    other = read(f"{text}listen c\n  bind *:9001\n  stats enable\n  monitor-uri /other\n")
    assert "`/healthz` is answered alongside the statistics" in other.refused[0]
    wrong = read(text.replace("/healthz", "healthz"))
    assert "must be a path" in wrong.refused[0]


@pytest.mark.parametrize(
    ("line", "refused"),
    [
        ("stats auth admin", "the line needs a user and a password"),
        ("stats uri", "a value is missing"),
    ],
)
def test_what_is_refused_of_statistics(line: str, refused: str):
    """It is named."""
    assert refused in read(f"{TIMES}listen s\n  mode http\n  bind *:1\n  stats enable\n  {line}\n").refused[0]


def test_changing_servers_from_the_page():
    """That is a condition that cannot be asked, unless it is none."""
    text = f"{TIMES}listen s\n  mode http\n  bind *:1\n  stats enable\n  stats admin if"
    assert read(f"{text} LOCALHOST\n").outcome("stats admin") is Outcome.CHANGED
    assert read(f"{text} TRUE\n").outcome("stats admin") is Outcome.CHANGED
    named = read(f"{text} TRUE\n  stats auth a:b\n")
    assert named.outcome("stats admin") is Outcome.KEPT
    assert named.config.stats is not None
    assert named.config.stats.admin == "on"


def test_sections_that_do_nothing():
    """Without an address, a backend, or with `disabled`, they are left out with all of their lines."""
    for text in (
        f"frontend f\n  default_backend b\nbackend b\n{SERVER}",
        "frontend f\n  bind *:1\n",
        f"listen l\n  disabled\n  bind *:1\n{SERVER}",
    ):
        found = read(f"{TIMES}{text}")
        assert found.refused == []
        assert found.config.api is None
        assert found.found.lines[4].outcome is Outcome.IGNORED
    enabled = read(f"{TIMES}  disabled\nlisten l\n  enabled\n  bind *:1\n{SERVER}")
    assert enabled.config.api is not None


def test_backends():
    """A default backend must be there; one of HTTP is not served; one without a condition is the default."""
    assert frontend("default_backend c", bind="bind *:1").line("default_backend c").outcome is Outcome.IGNORED
    missing = read(f"{TIMES}frontend f\n  bind *:1\n  default_backend bb\nbackend b\n{SERVER}")
    assert missing.refused == ["7:19: there is no backend `bb`: did you mean `b`?"]
    far = read(f"{TIMES}frontend f\n  bind *:1\n  default_backend qqq\n")
    assert far.refused == ["7:19: there is no backend `qqq`"]
    http = read(f"{TIMES}frontend f\n  bind *:1\n  default_backend b\nbackend b\n  mode http\n{SERVER}")
    assert http.outcome("default_backend") is Outcome.IGNORED
    used = read(f"{TIMES}frontend f\n  bind *:1\n  use_backend b\nbackend b\n{SERVER}")
    assert used.frontend().pool == "b"
    first = read(
        f"{TIMES}frontend f\n  bind *:1\n  default_backend c\n  use_backend b\n  use_backend c\n"
        f"backend b\n{SERVER}backend c\n{SERVER}"
    )
    assert first.frontend().pool == "b"
    assert first.outcome("use_backend c") is Outcome.IGNORED
    assert first.outcome("default_backend c") is Outcome.IGNORED
    assert read(f"{TIMES}frontend f\n  bind *:1\n  use_backend\n").refused
    assert read(f"{TIMES}frontend f\n  bind *:1\n  default_backend\n").refused


def test_listens():
    """One with servers is a frontend and a pool of one name; one with a default backend has its servers."""
    found = read(f"{TIMES}listen l\n  bind *:1\n{SERVER}listen m\n  bind *:2\n  default_backend l\n")
    assert found.frontend("l").pool == "l"
    assert found.frontend("m").pool == "l"
    assert list(found.config.pools) == ["l"]
    empty = read(f"{TIMES}listen l\n  bind *:1\n")
    assert empty.pool("l").servers.by_name == {}


def test_names():
    """Each has one, and servers of one name are there once."""
    assert read("frontend\n").refused == ["1:1: the section needs a name: `frontend NAME`"]
    twice = read(f"{TIMES}backend b\n{SERVER}backend b\n{SERVER}")
    assert twice.refused == ["7:9: line 5 already defines servers under this name"]
    changed = read(f"{TIMES}listen a:b\n  bind *:1\n{SERVER}")
    assert list(changed.config.pools) == ["a-b"]
    assert changed.frontend("a-b").pool == "a-b"


def test_too_many_sections():
    """They have a limit, like all that is read."""
    found = read("".join(f"frontend f{at}\n" for at in range(MOST_SECTIONS + 2)))
    assert [each.partition(": ")[2] for each in found.refused] == ["there are more than 5000 sections"] * 2


def test_defaults():
    """Each holds for the sections behind it, one that is named for those that ask for it."""
    found = read(
        f"{TIMES}  retries 1\nlisten a\n  bind *:1\n{SERVER}"
        "defaults slow\n  retries 2\n  timeout connect 1s\n"
        "defaults quick from slow\n  timeout connect 2s\n"
        f"listen b from slow\n  bind *:2\n{SERVER}listen c\n  bind *:3\n{SERVER}"
        "defaults from slow\n  retries 9\n"
        f"listen d\n  bind *:4\n{SERVER}"
    )
    assert found.refused == []
    pools = found.config.pools
    assert [pools[name].retries or found.config.defaults.retries for name in "abcd"] == [1, 2, 2, 9]
    assert pools["c"].timeouts.connect == 2.0
    assert read("listen l from nowhere\n").refused == [
        "1:15: there is no `defaults nowhere` before this line"
    ]


def test_the_machine_config_port():
    """Everybody may connect, as the file has it, and that has to be said here."""
    found = read(f"{TIMES}listen l\n  bind *:22623\n{SERVER}")
    assert found.frontend("l").allow == ("0.0.0.0/0", "::/0")
    assert found.outcome("bind") is Outcome.CHANGED
    guarded = read(
        f"{TIMES}listen l\n  bind *:22623\n"
        f"  tcp-request connection reject unless {{ src 10.0.0.0/8 }}\n{SERVER}"
    )
    assert guarded.frontend("l").allow == ("10.0.0.0/8",)
    behind = read(f"{TIMES}listen l\n  bind *:1\n  server s 10.0.0.1:22623\n")
    assert behind.frontend("l").allow == ("0.0.0.0/0", "::/0")


def test_keepalive_of_clients():
    """`option clitcpka` and `tcpka`."""
    found = frontend("option clitcpka", "clitcpka-idle 30s", "clitcpka-cnt 4").frontend().keepalive
    assert found is not None
    assert (found.idle, found.count) == (30.0, 4)


def test_limits():
    """A frontend says its own where it differs from most."""
    found = read(
        f"{TIMES}  maxconn 300\nlisten a\n  bind *:1\n{SERVER}listen b\n  bind *:2\n{SERVER}"
        f"listen c\n  bind *:3\n  maxconn 20\n{SERVER}"
    )
    assert found.config.defaults.max_connections == 300
    assert [found.frontend(name).max_connections for name in "abc"] == [None, None, 20]
    assert "is not a number" in frontend("maxconn -1").refused[0]
