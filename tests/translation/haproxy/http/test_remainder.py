"""The haproxy.cfg with which HAProxy goes on: the sections of HTTP, as they stand, and all that they need."""

import pytest
from support.translation.haproxy_files import NO_FILES, TIMES, read

from appliance.translation.haproxy.reader import ConfigurationFile, translate_all

pytestmark = pytest.mark.pure

HTTP = TIMES.replace("\n", "\n  mode http\n", 1)
HEAD = """\
# HAProxy continues with this file: the sections that read HTTP. `appliance import --http skip` wrote it;
# the appliance serves the other frontends.

"""
WEB = "frontend web\n  bind :80\n  default_backend web\nbackend web\n  server a 192.0.2.21:80 check\n"
MASTERS = """\
listen api from tcp
  bind :6443
  maxconn 100
  tcp-request connection reject if { src 192.0.2.9 }
  balance source
  server m0 192.0.2.11:6443 check
"""
TCP = "defaults tcp\n  mode tcp\n  timeout connect 1s\n  timeout client 1s\n  timeout server 1s\n"


def rest(text: str) -> str:
    """Return what HAProxy goes on with, without the comment at its top."""
    found = read(text, http="skip")
    assert found.refused == []
    assert found.found.remainder.startswith(HEAD)
    return found.found.remainder.removeprefix(HEAD)


def test_ours_is_gone_with_its_comment_and_the_rest_stands_as_it_is():
    """Comments before a section are the section's; blocks, `userlist` and the like stay."""
    text = (
        "# all of it\nglobal\n  daemon\n\n"
        + HTTP
        + "\n# for people\nuserlist people\n  user a password b\n\n"
        "# the site\n" + WEB + "\n.if 1\n# the API\n" + TCP + MASTERS + ".endif\n\n# a page\nlisten p\n"
        "  bind :9000\n  stats enable\n"
    )
    assert rest(text) == (
        "# all of it\nglobal\n  daemon\n\n"
        + HTTP
        + "\n# for people\nuserlist people\n  user a password b\n\n"
        "# the site\n" + WEB + "\n.if 1\n# the API\n" + TCP + ".endif\n"
    )


def test_a_backend_that_both_use_is_there_for_both():
    """Without what takes clients: those are ours."""
    asking = WEB.replace("  default", "  acl dead nbsrv(api) lt 1\n  http-request deny if dead\n  default")
    found = read(HTTP + asking + TCP + MASTERS, http="skip")

    assert found.frontend("api").pool == "api"
    assert found.found.remainder.removeprefix(HEAD) == (
        HTTP + asking + TCP + "backend api from tcp\n  balance source\n  server m0 192.0.2.11:6443 check\n"
    )


def test_what_a_backend_of_both_names_is_there_too():
    """`track` leads from one to the next."""
    tracked = "  server m0 192.0.2.11:6443 track real/m0\n"
    text = (
        HTTP
        + WEB.replace("check", "track api/m0")
        + TCP
        + "frontend f from tcp\n  bind :6443\n  default_backend api\nbackend api from tcp\n"
        + tracked
        + "backend real from tcp\n  server m0 192.0.2.11:6443 check\n"
        + "backend other from tcp\n  server m0 192.0.2.11:6443 check\n"
    )
    found = read(text, http="skip").found.remainder

    assert [name in found for name in ("backend api", "backend real", "backend other")] == [True, True, False]


def test_several_files_are_one():
    """In the order in which HAProxy takes them."""
    parts = {"a": HTTP + MASTERS.replace(" from tcp", "\n  mode tcp"), "b": "# the site\n" + WEB}
    files = [ConfigurationFile(source=name, text=text.encode()) for name, text in parts.items()]
    found = translate_all(files, environment={}, read=NO_FILES, http="skip")

    assert found.remainder == HEAD + HTTP + "\n# the site\n" + WEB
    assert [(each.place.source, each.place.line) for each in found.left] == [("b", 2), ("b", 5)]
