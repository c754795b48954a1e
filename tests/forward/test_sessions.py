"""The listing of forwarded connections, and which of them `kill` means, by a conntrack of the test's own."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import cast

import pytest
from support.values import snapshots

from appliance.core.balancing.pool_state import PoolState
from appliance.core.forwarding.mark_numbers import MARK, Numbers, comment
from appliance.core.forwarding.plan import KernelFrontend
from appliance.forward import sessions as module
from appliance.forward.forwarder import Forwarder
from appliance.forward.kernel_tables import KernelTables
from appliance.forward.sessions import ForwardedSessions
from appliance.net.netlink import conntrack
from appliance.net.netlink.conntrack import Flow, TrackedConnection
from appliance.wire.lines import listed_session
from appliance.wire.lines.control import Answer, ControlError, Question

pytestmark = pytest.mark.sockets

Ask = Callable[..., Answer]
Table = list[TrackedConnection]


def tracked(number: int, client: str, **changes: object) -> TrackedConnection:
    """Return an open connection of a client to the server with this number."""
    flow = Flow(source=client, source_port=40000 + number, destination="192.0.2.200", destination_port=443)
    back = Flow(source="10.0.0.1", source_port=6443, destination="192.0.2.1", destination_port=50000)
    made = TrackedConnection(mark=MARK | number, client=flow, server=back, open=True, established=True)
    return replace(made, **changes)


@pytest.fixture
def numbers() -> Numbers:
    """Those of two servers of the frontend `main`."""
    found = Numbers()
    found.restore({at: comment(f"api/main pool/{each}") for at, each in enumerate("ab", 1)})
    return found


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> list[TrackedConnection]:
    """What the kernel tracks; what is ended goes."""
    found: list[TrackedConnection] = []

    class Conntrack:
        def each(self, *_: int, but: frozenset[str]) -> Iterator[TrackedConnection]:
            yield from (each for each in tuple(found) if each.client.destination not in but)

        def close(self) -> None:
            pass

    def end_each(connections: list[TrackedConnection]) -> int:
        for each in connections:
            found.remove(each)
        return len(connections)

    monkeypatch.setattr(module, "Conntrack", Conntrack)
    monkeypatch.setattr(module, "end_each", end_each)
    return found


@pytest.fixture
def ask(numbers: Numbers) -> Ask:
    """The two commands, of a forwarder with the servers a and b in the frontend `main`."""
    pool = snapshots.pool(servers=[snapshots.server(each, host="10.0.0.1") for each in ("a", "b")])
    frontend = KernelFrontend(name="api/main", config=snapshots.frontend("main", pool=pool.name))
    pools = {pool.name: PoolState(pool, workers=1, index=0, random=Random(0))}  # noqa: S311  # no secret
    tables = KernelTables()  # without flowtables they ask nobody
    syncing = SimpleNamespace(elsewhere=frozenset({"192.0.2.203"}))
    forwarder = SimpleNamespace(
        frontends=(frontend,), pools=pools, numbers=numbers, tables=tables, syncing=syncing
    )
    subject = ForwardedSessions(cast("Forwarder", forwarder))

    def asked(command: str, **values: object) -> Answer:
        question = Question(command=command, values=values)
        return subject.listing() if command == "sessions" else subject.kill(question)

    return asked


def test_what_the_kernel_knows_is_listed(ask: Ask, table: Table, monkeypatch: pytest.MonkeyPatch):
    """Whose it is by its mark, when it began, how long it has been silent; others are nobody's."""
    monkeypatch.setattr(module, "longest_silence", lambda: 432_000)
    table += [
        tracked(1, "192.0.2.7", id=10, remaining=431_990, started=1.0, sent=3, answered=4),
        tracked(2, "2001:db8::7", id=11, established=False, remaining=100),
        tracked(9, "192.0.2.8", id=12, open=False, connecting=True, established=False),
        tracked(1, "192.0.2.9", open=False, established=False),
    ]
    first, second, third = listed_session.decode(ask("sessions"))

    assert (first.id, first.frontend, first.server) == ("kernel-0000000a", "main", "pool/a")
    assert (first.client, first.idle, first.remaining) == ("192.0.2.7:40001", 10.0, 431_990.0)
    assert (first.bytes_in, first.bytes_out, first.phase) == (3, 4, "forwarded")
    assert first.age is not None
    assert first.age > 1_000_000
    assert (second.client, second.server, second.idle) == ("[2001:db8::7]:40002", "pool/b", None)
    assert (third.frontend, third.server, third.age, third.phase) == ("-", None, None, "connecting")


def test_connections_of_another_node_are_not_listed_and_not_ended(ask: Ask, table: Table):
    """With `sync` they are in this kernel's table too; the node that has the virtual IP answers for them."""
    flow = Flow(source="192.0.2.7", source_port=1, destination="192.0.2.203", destination_port=443)
    table.append(replace(tracked(1, "192.0.2.7"), client=flow))
    assert not listed_session.decode(ask("sessions"))
    assert ask("kill", server="pool/a").values["killed"] == 0


def test_a_listing_is_bounded(ask: Ask, table: Table, monkeypatch: pytest.MonkeyPatch):
    """More than an answer holds are counted."""
    monkeypatch.setattr(module, "MOST", 3)
    table += [tracked(1, "192.0.2.7", id=number) for number in range(500)]
    answer = ask("sessions")
    assert (len(listed_session.decode(answer)), listed_session.left_out(answer)) == (3, 497)


@pytest.mark.parametrize(
    ("which", "left"),
    [
        ({"id": "kernel-00000001"}, [2, 3]),
        ({"id": "proxy-api-1-0-1"}, [1, 2, 3]),
        ({"server": "pool/a"}, [2]),
        ({"server": "pool/other"}, [1, 2, 3]),
        ({"source": "192.0.2.0/24"}, [3]),
        ({"source": "2001:db8::7"}, [1, 2]),
        ({"destination": "192.0.2.200"}, []),
        ({"destination": "192.0.2.201"}, [1, 2, 3]),
    ],
)
def test_what_is_named_is_ended(ask: Ask, table: Table, which: dict[str, str], left: list[int]):
    """By id, server, client or virtual IP, and how many there were is told."""
    table += [
        tracked(1, "192.0.2.7", id=1),
        tracked(2, "192.0.2.8", id=2),
        tracked(1, "2001:db8::7", id=3),
    ]
    assert ask("kill", **which).values["killed"] == 3 - len(left)
    assert [each.id for each in table] == left


def test_what_names_nothing_is_refused(ask: Ask, table: Table):
    """Neither all are meant, nor a network that is none."""
    table.append(tracked(1, "192.0.2.7"))
    assert not ask("kill").ok
    with pytest.raises(ControlError, match="source"):
        ask("kill", source="192.0.2.0/99")
    assert len(table) == 1


def test_a_kernel_that_does_not_tell_its_time_is_no_idle_time(
    ask: Ask, table: Table, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """Without the setting how long a connection has been silent is unknown."""
    monkeypatch.setattr(conntrack, "_SILENCE", tmp_path / "missing")
    table.append(tracked(1, "192.0.2.7", remaining=9))
    (found,) = listed_session.decode(ask("sessions"))
    assert (found.idle, found.remaining) == (None, 9.0)
