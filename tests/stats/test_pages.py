"""Where the page is, what options in an address do, and what is answered beside it."""

from pathlib import Path

import pytest
from support.stats.asked_pages import asked

from appliance.model.snapshot.frontends import Bind
from appliance.model.snapshot.snapshot import Stats
from appliance.stats.access import web_access

pytestmark = pytest.mark.sockets

_BIND = Bind(host="localhost", port=1)
_CSV = "# pxname,svname"


@pytest.mark.parametrize(
    "target",
    [
        "/haproxy?stats;csv",
        "/haproxy?stats;csv;norefresh",
        "/haproxy_stats;csv",
        "/;csv",
        "/anything;csv",
        "/?x=y;csv",
    ],
)
def test_figures_as_csv(tmp_path: Path, target: str):
    """`;csv` may stand behind the path or behind its query, as HAProxy's own address has it."""
    status, kind, body = asked(tmp_path, target, Stats(bind=_BIND))

    assert (status, kind) == (200, "text/plain")
    assert body.startswith(_CSV)


@pytest.mark.parametrize(
    ("paths", "target", "status"),
    [
        (("/lb?stats",), "/lb?stats", 200),
        (("/lb?stats",), "/lb?stats;norefresh", 200),
        (("/lb?stats",), "/lb", 404),
        (("/lb",), "/lb/more", 200),
        (("/lb",), "/other", 404),
        (("/",), "/whatever?x", 200),
        ((), "/haproxy?stats", 200),
        ((), "/whatever", 404),
    ],
)
def test_where_the_page_is(tmp_path: Path, paths: tuple[str, ...], target: str, status: int):
    """At its own addresses and at all that begins with one of `uri`, as HAProxy compares it."""
    found = asked(tmp_path, target, Stats(bind=_BIND, paths=paths))

    assert found[0] == status
    assert found[1].startswith("text/html") is (status == 200)


def test_metrics_are_where_they_were(tmp_path: Path):
    """`uri: [/]` has all addresses but those that are something else."""
    assert asked(tmp_path, "/metrics", Stats(bind=_BIND, paths=("/",)))[1].startswith("text/plain; version")
    assert asked(tmp_path, "/api/v1/status", Stats(bind=_BIND, paths=("/",)))[1] == "application/json"


def test_the_monitor_needs_no_password(tmp_path: Path):
    """`respond` tells everybody whether workers accept, as `monitor-uri` does; all else is closed."""
    stats = Stats(bind=_BIND, respond="/healthz", user="a", password="b", paths=("/",))  # noqa: S106  # a test

    assert asked(tmp_path, "/healthz", stats)[::2] == (
        200,
        "<html><body><h1>200 OK</h1>\nService ready.\n</body></html>\n",
    )
    assert asked(tmp_path, "/healthz", stats, method="HEAD")[::2] == (200, "")
    assert asked(tmp_path, "/healthz", stats, method="POST")[0] == 401
    assert asked(tmp_path, "/healthz?x", stats)[0] == 401
    assert asked(tmp_path, "/healthz;csv", stats)[0] == 401
    assert asked(tmp_path, "/", stats)[0] == 401


def test_the_monitor_without_its_pool(tmp_path: Path):
    """A pool that has no server up makes it 503."""
    stats = Stats(bind=_BIND, respond="/healthz", needs="masters")

    assert asked(tmp_path, "/healthz", stats)[0] == 503


def test_who_may_connect():
    """`deny` is stronger than `allow`."""
    access = web_access(Stats(bind=_BIND, allow=("10.0.0.0/8",), deny=("10.0.0.66/32",)))
    denied = web_access(Stats(bind=_BIND, deny=("10.0.0.66/32",)))

    clients = [bytes((10, 0, 0, 65)), bytes((10, 0, 0, 66)), bytes((192, 0, 2, 1))]
    assert [access.allows(each) for each in clients] == [True, False, False]
    assert [denied.allows(each) for each in clients] == [True, False, True]
