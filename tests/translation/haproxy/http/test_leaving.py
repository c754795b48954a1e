"""Sections that read HTTP: refused with what `mode tcp` would lose, or left to HAProxy (`http: skip`)."""

import pytest
from support.translation.haproxy_files import TIMES, Read, read

from appliance.translation.translation import HttpSections, Outcome

pytestmark = pytest.mark.pure

HTTP = TIMES.replace("\n", "\n  mode http\n", 1)
WEB = """\
frontend web
  bind :80
  bind :443 ssl crt /etc/haproxy/site.pem
  redirect scheme https if !{ ssl_fc }
  acl is_api path_beg /api
  http-request deny if { path /admin }
  use_backend api_web if is_api
  default_backend web
backend web
  cookie SRV insert
  server a 192.0.2.21:8080 check cookie a
backend api_web
  http-request set-header X-Forwarded-Proto https
  server a 192.0.2.22:8443 ssl verify none
"""
MASTERS = """\
frontend api
  mode tcp
  bind :6443
  default_backend masters
backend masters
  mode tcp
  server m0 192.0.2.11:6443 check
"""
SAMPLE = """\
frontend main
  bind *:5000
  acl url_static path_beg -i /static /images
  use_backend static if url_static
  default_backend app
backend static
  balance roundrobin
  server static 127.0.0.1:4331 check
backend app
  balance roundrobin
  server app1 127.0.0.1:5001 check
"""


def kept_of(found: Read, first: str, last: str) -> list[str]:
    """Return the lines from one section on to another that are reported as kept."""
    texts = [each.text for each in found.found.lines]
    between = found.found.lines[texts.index(first) : texts.index(last)]
    return [each.text for each in between if each.outcome is Outcome.KEPT]


def test_a_refused_section_is_one_line_and_says_what_mode_tcp_would_lose():
    """Each with its first line, whichever line of the section says it; no other line of it is kept."""
    found = read(HTTP + WEB + MASTERS)

    said, end = (
        " runs in `mode http` (line 2): HTTP is not read here: ",
        "; write it, or leave the section to HAProxy (",
    )
    lost = (
        "TLS termination (line 8), redirects (line 9), rules by path (line 10) and refused requests (line 11)"
    )
    of_api = "TLS to servers (line 19) and header changes (line 18)"
    assert [each.removesuffix("`http: skip`)") for each in found.refused] == [
        f"6:10: the frontend `web`{said}`mode tcp` would lose {lost}{end}",
        f"14:9: the backend `web`{said}`mode tcp` would lose cookies (line 15){end}",
        f"17:9: the backend `api_web`{said}`mode tcp` would lose {of_api}{end}",
    ]
    assert kept_of(found, "frontend web", "frontend api") == []


def test_what_loses_nothing_is_told_to_be_tcp():
    """Nothing that the section says needs HTTP."""
    found = read(f"{HTTP}listen l\n  bind :1\n  server s 10.0.0.1:1\n{MASTERS}")

    assert [each.rpartition(": ")[2] for each in found.refused] == [
        "write `mode tcp`, which leaves HTTP and TLS to the servers"
    ]


def test_skipped_sections_are_left_out_and_the_rest_loads():
    """Nothing of them is refused or kept; the section's line says where nobody listens, and what it does."""
    found = read(HTTP + WEB + MASTERS, http="skip")

    assert found.refused == []
    assert kept_of(found, "frontend web", "frontend api") == []
    assert (list(found.config.pools), found.frontend("api").pool) == (["masters"], "masters")
    assert found.line("frontend web").reason == (
        "left to HAProxy (`http: skip`): it reads HTTP; this appliance does not listen on :80, "
        ":443; `mode tcp` would lose TLS termination (line 8), redirects (line 9), rules by path "
        "(line 10) and refused requests (line 11)"
    )
    assert {each.reason for each in found.lines("use_backend api_web")} == {
        "its section is left to HAProxy (`http: skip`)"
    }
    left = [(each.kind, each.name, each.addresses) for each in found.found.left]
    assert left == [
        ("frontend", "web", (":80", ":443")),
        ("backend", "web", ()),
        ("backend", "api_web", ()),
    ]


@pytest.mark.parametrize("http", ["refuse", "skip"])
def test_a_block_within_a_section_is_left_with_it(http: HttpSections):
    """A block around another section, or one that nobody understands, is not."""
    block = ".if 0\n.if 1\n.endif\n.elif 1\n  bind :81\n.else\n.endif\n"
    found = read(HTTP + WEB + block + ".if 1\n" + MASTERS + ".endif\n", http=http)

    assert [each.text for each in found.lines(".") if each.outcome is Outcome.KEPT] == [".if 1", ".endif"]
    assert kept_of(found, "frontend web", "frontend api") == [".if 1"]
    assert (
        read(HTTP + WEB + ".if feature(X)\n.endif\n" + MASTERS, http=http).outcome(".if") is Outcome.REFUSED
    )


def test_nothing_of_it_is_done_unless_asked():
    """Left to HAProxy is nothing where nobody said so."""
    found = read(HTTP + WEB + MASTERS).found

    assert (found.left, found.remainder) == ((), "")


def test_settings_that_only_they_use_are_not_kept():
    """`mode http` of defaults that others share, and all of those that are theirs alone, refused or not."""
    own = "defaults tcp\n  mode tcp\n  timeout connect 1s\n  timeout client 1s\n  timeout server 1s\n"
    shared = read(HTTP.replace("http\n", "http\n  log global\n", 1) + WEB + MASTERS, http="skip")
    assert shared.line("mode http").reason == "only sections that are left to HAProxy (`http: skip`) use it"
    assert shared.outcome("timeout client") is Outcome.KEPT

    separate = read(
        HTTP.replace("mode http\n", "mode http\n  monitor-net 10.0.0.0/8\n") + WEB + own + MASTERS,
        http="skip",
    )
    assert separate.refused == []
    assert kept_of(separate, "defaults", "frontend web") == []


@pytest.mark.parametrize(
    "page",
    [
        "listen stats\n  bind :9000\n  stats enable\n  stats uri /\n",
        "frontend stats\n  bind :9000\n  default_backend page\nbackend page\n  stats enable\n  stats uri /\n",
        "frontend health\n  bind :9000\n  monitor-uri /healthz\n",
    ],
)
def test_pages_and_monitors_stay_ours(page: str):
    """They are understood, and no traffic of anybody's."""
    found = read(HTTP + WEB + page + MASTERS, http="skip")

    assert found.refused == []
    assert not {"stats", "page", "health"} & {each.name for each in found.found.left}
    assert "9000" in str(found.tree)
    assert "9000" not in found.found.remainder


@pytest.mark.parametrize(
    ("section", "addresses"),
    [
        ("listen l\n  bind :81\n  stats enable\n  server s 10.0.0.1:1\n", [":81"]),
        ("frontend l\n  bind :81\n  stats enable\n  use_backend web if { path / }\n", [":81"]),
        ("frontend l\n  bind :81\n  monitor-uri /x\n  monitor fail if { nbsrv(web) lt 1 }\n", [":81"]),
        ("frontend l\n  bind :81\n  redirect prefix https://a.example\n", [":81"]),
        ("frontend l\n  bind :81\n  use_backend %[req.hdr(host)]\n", [":81"]),
        ("frontend l *:81\n  bind unix@/run/s\n  default_backend web\n", ["*:81", "unix@/run/s"]),
        ("frontend l\n  mode tcp\n  bind :81\n  default_backend web\n", [":81"]),
        (
            "frontend l\n  mode tcp\n  bind :81\n  default_backend m\nbackend m\n  redirect prefix https://a\n",
            [":81"],
        ),
    ],
)
def test_what_has_to_do_with_http_is_left_as_a_whole(section: str, addresses: list[str]):
    """HAProxy has each with all that it says.

    A page beside traffic, a monitor that counts servers of it, a redirect, a name that is made up, and TCP
    that is read as HTTP, as its backend is.
    """
    found = read(HTTP + WEB + section + MASTERS, http="skip")

    assert found.refused == []
    assert [each.addresses for each in found.found.left if each.name == "l"] == [tuple(addresses)]
    assert section in found.found.remainder


@pytest.mark.parametrize(
    ("section", "reason"),
    [
        (
            "frontend l\n  mode tcp\n  bind :81\n  default_backend web\n",
            "has the backend `web` in `mode http`",
        ),
        (
            "frontend l\n  bind :81\n  monitor-uri /x\n  monitor fail if { nbsrv(web) lt 1 }\n",
            "HTTP is not read here: leave the section to HAProxy (`http: skip`): it depends on a backend",
        ),
    ],
)
def test_what_has_to_do_with_http_is_refused_as_a_whole(section: str, reason: str):
    """Where nothing is skipped."""
    assert any(reason in each for each in read(HTTP + WEB + section + MASTERS).refused)


def test_a_page_behind_a_frontend_for_tcp_is_left_out():
    """HAProxy would show it; it is no traffic of anybody's, and our page has an address of its own."""
    page = "frontend l\n  mode tcp\n  bind :81\n  default_backend p\nbackend p\n  stats enable\n"
    found = read(HTTP + page + MASTERS)

    assert (found.refused, found.line("frontend l").reason) == ([], "its backend `p` cannot be served")


@pytest.mark.parametrize("http", ["refuse", "skip"])
@pytest.mark.parametrize("line", ["mode http", "disabled\n  bind :81", "mode tcp\n  default_backend web"])
def test_what_nobody_can_reach_is_no_more_than_left_out(line: str, http: HttpSections):
    """As in `mode tcp`: nobody is without anything."""
    found = read(f"{HTTP}{WEB}listen l\n  {line}\n  server s 10.0.0.1:1\n{MASTERS}", http=http)

    assert found.outcome("listen l") is Outcome.IGNORED
    assert not any("`l`" in each for each in found.refused)
    assert "l" not in {each.name for each in found.found.left}


def test_a_rule_of_http_in_a_frontend_for_tcp_leaves_nothing_out():
    """What shares a port with TCP stays an error: nobody loses a port in silence."""
    shared = "frontend l\n  mode tcp\n  bind :81\n  use_backend web if HTTP\n  default_backend masters\n"
    found = read(HTTP + WEB + shared + MASTERS, http="skip")

    assert "l" not in {each.name for each in found.found.left}
    assert any("not routed by `HTTP`" in each for each in found.refused)


def test_a_frontend_of_the_same_name_as_a_backend_is_judged_by_itself():
    """HAProxy has names of frontends and of backends apart."""
    front = "frontend web2\n  mode tcp\n  bind :81\n  default_backend masters\n"
    back = "backend web2\n  server s 10.0.0.1:1\n"
    found = read(HTTP + front + back + MASTERS, http="skip")

    assert [(each.kind, each.name) for each in found.found.left] == [("backend", "web2")]
    assert found.frontend("web2").pool == "masters"


@pytest.mark.parametrize("line", ["frontent api", 'http-request set-header X "open'])
def test_what_is_no_line_of_haproxys_stays_refused(line: str):
    """A misspelt header would make the section behind it a part of the one that is left out."""
    assert read(HTTP + WEB + f"  {line}\n" + MASTERS, http="skip").refused


def test_a_file_of_http_alone_is_refused():
    """By mistake it may say `mode http` for all: all that is served would end, and nobody asked for it."""
    found = read(HTTP + MASTERS.replace("  mode tcp\n", ""), http="skip")

    assert found.refused == [
        "6:1: nothing is left to serve: every section that forwards connections reads HTTP or is left out"
    ]


def test_the_sample_of_the_package_has_its_own_word():
    """It stands in many files by chance: it serves nothing, also where it is left to HAProxy."""
    words = "the package's sample (`frontend main`, `static`, `app`), which has no real servers: remove it"

    assert [words in each for each in read(HTTP + SAMPLE + MASTERS).refused] == [True] * 3
    skipped = read(HTTP + SAMPLE + MASTERS, http="skip")
    assert [words in str(skipped.line(each).reason) for each in ("frontend main", "backend app")] == [
        True
    ] * 2


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("127.0.0.1:5001", "192.0.2.1:5001"),
        ("frontend main", "frontend web"),
        ("default_backend app", "default_backend other"),
        ("backend static", "backend other"),
    ],
)
def test_what_somebody_made_of_the_sample_is_none(old: str, new: str):
    """It has servers or names of somebody's."""
    assert not any("the package's sample" in each for each in read(HTTP + SAMPLE.replace(old, new)).refused)


def test_many_addresses_are_counted():
    """One sentence names some of them."""
    binds = ",".join(f":{port}" for port in range(1001, 1021))
    found = read(f"{HTTP}listen l\n  bind {binds}\n  server s 10.0.0.1:1\n{MASTERS}", http="skip")

    assert ":1008, 12 more" in str(found.line("listen l").reason)
    assert len(found.found.left[0].addresses) == 20
