"""The proxy master with real workers, real clients and real faults."""

from collections.abc import Iterator

import pytest
from support.backend import Backend
from support.lone_proxy import LoneProxy
from support.ports import accepts, free_port
from support.snapshots import bind, frontend, group, pool, server, snapshot

from appliance.model.snapshot import Snapshot

pytestmark = pytest.mark.programs


class Site:
    """A master behind a proxy: its snapshots by number."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.port = free_port()

    def snapshot(self, number: int = 1, *, workers: int = 1, **changes: object) -> Snapshot:
        """Return a snapshot; `revision` of a number is one that needs a new generation."""
        settings: dict[str, object] = {
            "binds": [bind(self.port, host="::")],
            "deny": (f"192.0.2.{number}/32",),
        }
        settings.update(changes.pop("frontend", {}))
        return snapshot(
            number=number,
            groups=[group(workers=workers, frontends=[frontend(**settings)])],
            pools=[pool(servers=[server(port=self.backend.port)])],
            **{"drain": 5.0, **changes},
        )


@pytest.fixture(scope="module")
def backend() -> Iterator[Backend]:
    """Return a scripted server."""
    with Backend("master-0") as backend:
        yield backend


@pytest.fixture
def site(backend: Backend) -> Site:
    """Return a place for a proxy."""
    return Site(backend)


def test_start_and_status(site: Site) -> None:
    """A master starts the accepted snapshot with all its workers, and says so."""
    with LoneProxy(site.snapshot(workers=2)) as proxy:
        proxy.run()
        status = proxy.status()
        assert status["program"] == "proxy-api"
        assert status["snapshot"] == 1
        assert status["listeners"] == [{"frontend": "frontend", "host": "::", "port": site.port}]
        (generation,) = proxy.generations().values()
        assert [each["phase"] for each in generation["workers"]] == ["accepting"] * 2
        assert {each["pid"] for each in generation["workers"]} == {each["pid"] for each in proxy.workers()}
        assert accepts(site.port)
