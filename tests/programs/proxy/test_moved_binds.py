"""A bind that is narrowed, widened or moved to the other group in one reload, under load: nobody notices."""

from collections.abc import Iterator

import pytest
from support.load.load import Load
from support.network.ports import accepts, free_port
from support.peers.backend import Backend
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance

pytestmark = pytest.mark.programs

_SESSIONS = 20
_HOST = "127.0.0.2"
WIDE, NARROW, V4 = "[::]", _HOST, "0.0.0.0"


class Site:
    """An appliance whose bind goes from group to group; each group may have a frontend that stays."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.port = free_port()
        self.others = {"api": free_port(), "ingress": free_port()}
        self.taken = backend.port

    def config(
        self, group: str, host: str, *, others: tuple[str, ...] = ("api", "ingress")
    ) -> dict[str, object]:
        """Return the configuration in which `group` has the bind, and `others` have one of their own."""
        frontends: dict[str, dict[str, object]] = {
            name: {f"{name}-other": {"bind": [f"127.0.0.1:{self.others[name]}"], "pool": "servers"}}
            for name in others
        }
        frontends.setdefault(group, {})["moved"] = {"bind": [f"{host}:{self.port}"], "pool": "servers"}
        groups = {name: {"workers": 2, "frontends": each} for name, each in frontends.items()}
        servers = {"one": {"address": f"127.0.0.1:{self.backend.port}", "check": False}}
        return {**groups, "pools": {"servers": {"servers": servers}}, "defaults": {"drain": "600s"}}


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """Return a place with a server."""
    with Backend("one") as backend:
        yield Site(backend)


def loaded(site: Site) -> Load:
    """Return running load on the bind."""
    return Load(port=site.port, host=_HOST, sessions=_SESSIONS, rate=200.0, pause=0.5)


def more(load: Load, number: int = 200) -> None:
    """Wait until so many more connections were made."""
    wanted = load.report().completed + number
    wait_until(lambda: load.report().completed >= wanted, what=f"{number} more connections", timeout=60.0)


def assert_nothing_lost(load: Load) -> None:
    """Fail where a connection was refused or reset, or a session ended."""
    more(load)
    report = load.report()
    assert report.failures == {}
    assert report.ended == []
    assert len(report.living) == _SESSIONS


_MOVES = [
    [("api", WIDE), ("api", NARROW), ("api", WIDE), ("api", V4), ("api", NARROW), ("api", V4)],
    [("ingress", WIDE), ("api", WIDE), ("ingress", WIDE)],
    [("ingress", WIDE), ("api", NARROW), ("ingress", WIDE), ("api", V4), ("ingress", NARROW)],
]


@pytest.mark.slow("many reloads under load")
@pytest.mark.promise("docs/reloading.md", "a bind that moves refuses nobody")
@pytest.mark.parametrize("moves", _MOVES, ids=["within a group", "between groups", "both at once"])
def test_under_load(site: Site, moves: list[tuple[str, str]]):
    """No connection is refused or reset by any of the reloads, and what was open stays open."""
    with Appliance(site.config(*moves[0])) as appliance, loaded(site) as load:
        load.wait_for_sessions()
        for group, host in moves[1:]:
            more(load)
            answer = appliance.reload(site.config(group, host))
            assert answer["ok"], answer
            assert "warnings" not in answer
            assert load.report().failures == {}, (group, host)
        assert_nothing_lost(load)
        narrow = moves[-1][1] == NARROW
        wait_until(
            lambda: accepts(site.port, "127.0.0.3") != narrow, what="other addresses are served or not"
        )


@pytest.mark.slow("generations of real workers under load")
@pytest.mark.parametrize("host", [WIDE, NARROW])
@pytest.mark.parametrize("stays", [True, False], ids=["its group stays", "its group goes"])
def test_to_a_group_that_is_new(site: Site, host: str, *, stays: bool):
    """The old workers accept until those of the program that is started do."""
    others = ("ingress",) if stays else ()
    with Appliance(site.config("ingress", WIDE, others=others)) as appliance, loaded(site) as load:
        load.wait_for_sessions()
        more(load)
        answer = appliance.reload(site.config("api", host, others=others))
        assert answer["ok"], answer
        assert_nothing_lost(load)
        status = appliance.ask("proxy-api", "status")["listeners"]
        assert isinstance(status, list)
        assert site.port in {each["port"] for each in status}


@pytest.mark.slow("generations of real workers under load")
def test_a_reload_that_another_program_refuses(site: Site):
    """All is as it was: the bind is in its group, and no connection was lost."""
    with Appliance(site.config("ingress", WIDE)) as appliance, loaded(site) as load:
        load.wait_for_sessions()
        for host in (WIDE, NARROW):
            config = site.config("api", host)
            group = config["ingress"]
            assert isinstance(group, dict)
            group["frontends"]["impossible"] = {"bind": [f"127.0.0.1:{site.taken}"], "pool": "servers"}
            answer = appliance.reload(config)
            assert not answer["ok"]
            assert "proxy-ingress" in str(answer["errors"])
            more(load)
        status = appliance.ask("proxy-api", "status")
        assert status["prepared"] is None
        assert site.port not in {each["port"] for each in status["listeners"]}  # type: ignore[attr-defined]  # JSON
        assert_nothing_lost(load)
