"""Accept queues that are added to an address: who comes to them, from when on, and who may add one."""

import os
import select
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from support.network.ports import free_port

from appliance.model.snapshot.frontends import Bind
from appliance.net.listening.bind_addresses import Address
from appliance.net.listening.listeners import Listeners, ReservedBinds

pytestmark = pytest.mark.sockets

_CLIENTS = 60
"""So many that none of four queues stays empty: that has one chance in ten million."""


@pytest.fixture
def listeners() -> Iterator[Listeners]:
    """Return a holder without sockets, and close what it has in the end."""
    listeners = Listeners()
    yield listeners
    listeners.keep_only(())


def reserved(listeners: Listeners, bind: Bind, *, workers: int) -> ReservedBinds:
    """Reserve a bind that must be had whole."""
    result = listeners.reserve([bind], workers=workers)
    assert isinstance(result, ReservedBinds), result
    assert result.notes == ()
    return result


def opened(listeners: Listeners, bind: Bind, *, workers: int) -> tuple[int, ...]:
    """Reserve a bind and listen on it; return its descriptors."""
    result = reserved(listeners, bind, workers=workers)
    listeners.open(result.fresh)
    return listeners.descriptors(result.addresses[bind][0])


def queued(descriptors: tuple[int, ...], host: str, port: int) -> Counter[int]:
    """Connect, and count how many clients have come to which queue."""
    found: Counter[int] = Counter()
    with ExitStack() as stack:
        for _ in range(_CLIENTS):
            stack.enter_context(socket.create_connection((host, port), timeout=10))
        for descriptor in descriptors:
            with socket.socket(fileno=os.dup(descriptor)) as listener:
                while select.select([listener], [], [], 0)[0]:
                    listener.accept()[0].close()
                    found[descriptor] += 1
    return found


@pytest.mark.parametrize(("host", "at"), [("127.0.0.1", "127.0.0.1"), ("::", "127.0.0.1"), ("::", "::1")])
def test_clients_are_divided(listeners: Listeners, host: str, at: str) -> None:
    """Each worker has a queue, and clients come to all of them."""
    bind = Bind(host=host, port=free_port())
    descriptors = opened(listeners, bind, workers=4)
    assert len(descriptors) == 4
    found = queued(descriptors, at, bind.port)
    assert set(found) == set(descriptors)
    assert found.total() == _CLIENTS


def test_nobody_comes_to_a_queue_before_it_is_opened(listeners: Listeners) -> None:
    """What is added for the next workers takes nothing while the former ones do not know of it."""
    bind = Bind(host="127.0.0.1", port=free_port())
    before = opened(listeners, bind, workers=2)
    result = reserved(listeners, bind, workers=4)
    (address,) = result.addresses[bind]
    assert result.fresh == frozenset()
    assert listeners.descriptors(address) == before
    after = listeners.descriptors(address, opening=True)
    assert len(after) == 4
    assert set(before) <= set(after)
    assert queued(before, bind.host, bind.port).total() == _CLIENTS
    listeners.open(result.fresh)
    assert listeners.descriptors(address) == after
    assert set(queued(after, bind.host, bind.port)) == set(after)


def test_queues_that_are_given_up(listeners: Listeners) -> None:
    """The address has those that it had."""
    bind = Bind(host="127.0.0.1", port=free_port())
    before = opened(listeners, bind, workers=1)
    result = reserved(listeners, bind, workers=3)
    listeners.give_up(result.fresh)
    listeners.open(result.fresh)
    assert listeners.descriptors(result.addresses[bind][0], opening=True) == before
    assert queued(before, bind.host, bind.port).total() == _CLIENTS


def test_fewer_workers_close_no_queue(listeners: Listeners) -> None:
    """Whoever waits in a queue stays there when workers become fewer; an address that goes closes all."""
    bind = Bind(host="127.0.0.1", port=free_port())
    before = opened(listeners, bind, workers=4)
    assert opened(listeners, bind, workers=2) == before
    listeners.keep_only(())
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((bind.host, bind.port), timeout=10)


def test_a_second_appliance_is_refused(listeners: Listeners) -> None:
    """Queues may be added by who holds the address, not by another program of ours."""
    bind = Bind(host="127.0.0.1", port=free_port())
    opened(listeners, bind, workers=4)
    problems = Listeners().reserve([bind], workers=4)
    assert not isinstance(problems, ReservedBinds)
    assert "address in use" in problems[0].reason


def test_a_queue_that_cannot_be_added(listeners: Listeners) -> None:
    """Where another socket is in the way workers share what there is, and the operator is told."""
    port = free_port()
    everywhere = Bind(host="0.0.0.0", port=port)
    reserved(listeners, everywhere, workers=1)
    with socket.socket() as other:
        # As another program's that is bound beside ours by way of SO_REUSEADDR, and does not listen.
        (held,) = listeners.descriptors(Address("0.0.0.0", port))
        with socket.socket(fileno=os.dup(held)) as ours:
            for each in (ours, other):
                each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            other.bind(("127.0.0.1", port))
            for each in (ours, other):
                each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 0)
        result = listeners.reserve([everywhere], workers=2)
    assert isinstance(result, ReservedBinds)
    (note,) = result.notes
    assert note.reason.startswith("fewer accept queues than workers")
    listeners.open(result.fresh)
    assert listeners.descriptors(Address("0.0.0.0", port)) == (held,)


def test_a_narrower_address_with_queues(listeners: Listeners) -> None:
    """One that is bound beside a wildcard, both with queues, gets its clients in all of its own."""
    port = free_port()
    wide, narrow = Bind(host="::", port=port), Bind(host="127.0.0.1", port=port)
    all_ = opened(listeners, wide, workers=3)
    result = reserved(listeners, narrow, workers=3)
    assert queued(all_, "127.0.0.1", port).total() == _CLIENTS
    listeners.open(result.fresh)
    ours = listeners.descriptors(Address("127.0.0.1", port))
    assert set(queued(ours, "127.0.0.1", port)) == set(ours)
    assert set(queued(all_, "127.0.0.2", port)) == set(all_)


def test_another_master_gets_all_queues(listeners: Listeners) -> None:
    """It knows each by itself, however often it is sent, and has them in the same order."""
    bind = Bind(host="127.0.0.1", port=free_port())
    descriptors = opened(listeners, bind, workers=4)
    next_one = Listeners()
    sent = [os.dup(each) for each in (*reversed(descriptors), *descriptors[:2])]
    (address,) = next_one.take_over(sent)
    taken = next_one.descriptors(address)
    assert [os.fstat(each).st_ino for each in taken] == [os.fstat(each).st_ino for each in descriptors]
    listeners.keep_only(())
    assert set(queued(taken, bind.host, bind.port)) == set(taken)
    next_one.keep_only(())


@pytest.mark.parametrize("after", ["::", "127.0.0.1"])
def test_queues_move_to_another_program(listeners: Listeners, after: str) -> None:
    """A group that gets an address gets all its queues; one beside it has its own."""
    port = free_port()
    opened(listeners, Bind(host="::", port=port), workers=3)

    def lend(wanted: int) -> list[socket.socket]:
        found = listeners.at(wanted).values()
        return [socket.socket(fileno=os.dup(each)) for queues in found for each in queues]

    taker = Listeners(lend)
    ours = opened(taker, Bind(host=after, port=port), workers=3)
    listeners.keep_only(())
    assert len(ours) == 3
    assert set(queued(ours, "127.0.0.1", port)) == set(ours)
    taker.keep_only(())
