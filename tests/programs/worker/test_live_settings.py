"""Settings that a running worker takes: no generation, what is open stays open, and what is new obeys."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from support.network.ports import free_port
from support.peers.backend import Backend
from support.processes.log_lines import logged
from support.processes.waiting import wait_until
from support.proxy.lone_proxy import LoneProxy
from support.values.snapshots import bind, frontend, group, pool, server, snapshot
from support.worker.trace import Origin, Relay, Setting, read_all, relay

from appliance.core.rollout.needs_generation import needs_generation
from appliance.model.end_reasons import EndReason
from appliance.model.snapshot import snapshot as model
from appliance.model.snapshot.snapshot import Log, Snapshot

pytestmark = pytest.mark.programs


def apply(running: Relay, **changes: object) -> None:
    """Have the worker take the setting with other values, as its master would: with no generation."""
    setting = replace(running.setting, **changes)
    setting.changes = {**setting.changes, "number": 2}
    before, after = running.setting.snapshot(), setting.snapshot()
    assert not needs_generation(before=before, after=after, group="api")
    running.worker.paths.snapshot(2).write_bytes(model.encode(after))
    assert running.worker.ask("apply", snapshot=2)["ok"]


def lines(running: Relay, event: str) -> list[dict[str, object]]:
    """Return the logged lines of an event."""
    return logged(running.log(), event)


@pytest.mark.parametrize("change", [{"deny": ("127.0.0.1/32",)}, {"allow": ("192.0.2.0/24",)}])
def test_who_may_connect(change: dict[str, object]):
    """From the next connection on; who is there stays, as in HAProxy, and the list can be taken back."""
    with relay(Setting(origins=[Origin()])) as running:
        client, served = running.pair()
        apply(running, front=change)
        assert running.refuses()
        client.sendall(b"still here")
        assert served.recv(100) == b"still here"
        apply(running, front={})
        assert len(running.pair()) == 2


def test_connection_lines():
    """`log.connections` holds for whoever ends from now on, and the level does not silence its lines."""
    with relay(Setting(origins=[Origin()])) as running:
        client, served = running.pair()
        apply(running, changes={"log": Log(level="error", format="json", connections=True)})
        client.close()
        served.close()
        running.until(lambda: lines(running, "connection"), "the line of a session that was open before")
        apply(running, changes={"log": Log(level="error", format="json", connections=False)})
        for each in running.pair():
            each.close()
        running.ended(EndReason.COMPLETED, 2)
        assert len(lines(running, "connection")) == 1


def test_level_and_form():
    """The worker's next line obeys both."""
    with relay(Setting(origins=[Origin()])) as running:
        cut(running)
        assert len(lines(running, "drain-cut")) == 1
    with relay(Setting(origins=[Origin()])) as running:
        apply(running, changes={"log": Log(level="error", format="json", connections=False)})
        cut(running)
        assert lines(running, "drain-cut") == []
    with relay(Setting(origins=[Origin()])) as running:
        apply(running, changes={"log": Log(level="info", format="console", connections=False)})
        cut(running)
        assert "drain-cut" in running.log()
        assert "{" not in running.log()


def cut(running: Relay) -> None:
    """Have the worker say a warning: it ends with a session."""
    ends = running.pair()
    running.worker.ask("drain", deadline=0.0)
    assert running.worker.process.wait(10) == 0
    assert len(ends) == 2


def test_connection_limit():
    """A lower limit ends nobody and lets nobody in until it is met; a higher one lets in who waits."""
    with relay(Setting(origins=[Origin()])) as running:
        first, second = running.pair(), running.pair()
        apply(running, front={"max_connections": 2})
        waiting = running.connect()
        waiting.sendall(b"waits")
        for client, served in (first, second):
            client.sendall(b"open")
            assert served.recv(10) == b"open"
        assert running.setting.origins[0].is_quiet(0.3)
        apply(running, front={"max_connections": 3})
        assert running.setting.origins[0].accept().recv(10) == b"waits"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"front": {"timeout_client": 0.3}}, EndReason.CLIENT_TIMEOUT),
        ({"back": {"timeout_server": 0.3}}, EndReason.SERVER_TIMEOUT),
    ],
)
def test_timeouts(changes: dict[str, object], reason: EndReason):
    """They hold for what is open, too: a shorter one ends what has been idle for longer."""
    with relay(Setting(origins=[Origin()])) as running:
        client, served = running.pair()
        apply(running, **changes)
        assert read_all(client) == b""
        running.ended(reason)
        assert served.fileno() >= 0


class Site:
    """A proxy's snapshots."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.port = free_port()

    def snapshot(self, number: int, *, settings: dict[str, object], **changes: object) -> Snapshot:
        """Return a snapshot with settings of its frontend."""
        front = frontend("front", binds=[bind(self.port)], **settings)
        return snapshot(
            number=number,
            groups=[group(workers=2, frontends=[front])],
            pools=[pool(servers=[server(port=self.backend.port)])],
            **changes,
        )


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """Return a place for a proxy with a server behind it."""
    with Backend("master-0") as backend:
        yield Site(backend)


@pytest.fixture(scope="module")
def proxy(site: Site) -> Iterator[LoneProxy]:
    """Give a proxy of two workers that the tests of this module share, each of which reloads it."""
    with LoneProxy(site.snapshot(1, settings={})) as proxy:
        proxy.run()
        yield proxy


@pytest.mark.slow("many connections, or real time-outs")
@pytest.mark.parametrize(
    ("settings", "changes"),
    [
        ({}, {"log": Log(level="debug", format="json", connections=True)}),
        ({"allow": ("127.0.0.0/8",)}, {}),
        ({"deny": ("192.0.2.0/24",)}, {}),
        ({"max_connections": 77}, {}),
        ({"timeout_client": 9.0, "timeout_client_fin": 2.0}, {}),
        ({"max_age": 900.0, "max_age_jitter": 0.1}, {}),
        ({"tcp_user_timeout": 9.0}, {}),
        ({}, {"drain": 9.0}),
    ],
)
def test_no_generation(site: Site, proxy: LoneProxy, settings: dict[str, object], changes: dict[str, object]):
    """The master answers when its workers obey, which are the same as before."""
    number = int(str(proxy.status()["snapshot"])) + 1
    proxy.reload(site.snapshot(number, settings={}))
    before = {each["pid"] for each in proxy.workers()}
    answer = proxy.reload(site.snapshot(number + 1, settings=settings, **changes))
    assert answer == {"ok": True, "changed": True}
    assert {each["pid"] for each in proxy.workers()} == before
    assert [each["snapshot"] for each in proxy.workers()] == [number + 1] * 2
    assert list(proxy.generations()) == [1]
    wait_until(lambda: proxy.phase() == "accepting", what="it serves")
