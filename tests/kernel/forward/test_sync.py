"""`sync: true`: connections that the kernel forwards go on when their node is lost."""

import contextlib
import json
import os
import signal
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final, Self

import pytest
from support.forward.forward_field import PORT, ForwardField, Session, forwards_to
from support.forward.forward_pair import VIPS, ForwardPair, third_node
from support.linger.linger_field import KEY
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance, Values
from support.vrrp.informed import wait_until_informed

from appliance.net.netlink.conntrack import Conntrack
from appliance.net.privileges.peer_credentials import listening_process

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "nft", "conntrackd", root=True)]

_FULL: Final = os.environ.get("E2E_FULL") == "1"
_COUNT: Final = 5000 if _FULL else 1000  # connections to each virtual IP
_TURNS: Final = 20 if _FULL else 1
PROXIED: Final = 9500
SLOW = pytest.mark.slow("whole appliances on a segment of their own")


def sync(appliance: Appliance) -> Values:
    """Return what `forward` says of its sync."""
    found: Values = appliance.ask("forward", "status")["sync"]  # type: ignore[assignment]  # JSON
    return found


@contextlib.contextmanager
def synced(
    pair: ForwardPair, *, sections: Mapping[str, object] | None = None
) -> Iterator[tuple[Appliance, Appliance]]:
    """Run both, the first one active, the other one with its connections; `sections` as in `appliances`."""
    with pair.appliances(sync=True, sections=sections) as both:
        for each in both:
            wait_until(lambda each=each: forwards_to(each, *pair.names), what="servers", timeout=30.0)
        pair.wait_for_holder(pair.first)
        for each in both:
            wait_until(lambda each=each: sync(each)["state"] == "synced", what="nodes hear each other")
        yield both


def opened(pair: ForwardPair, count: int) -> list[Session]:
    """Return so many connections to each virtual IP, which both nodes know."""
    found = [pair.first.session(address) for address in VIPS for _ in range(count)]
    wait_until(lambda: _ports(found) <= _known(pair.second), what="the other node knows them")
    return found


def _ports(sessions: list[Session]) -> set[int]:
    return {each.socket.getsockname()[1] for each in sessions}


def _known(field: ForwardField) -> set[int]:
    return {each.client.source_port for each in field.tracked()}


def answers(sessions: list[Session]) -> list[str]:
    """Return who answers on each, or the error."""
    found = []
    for each in sessions:
        try:
            found.append(each.asks())
        except OSError as error:
            found.append(type(error).__name__)
    return found


@pytest.mark.promise("survives", "a node with `forward: kernel` and `sync`")
@pytest.mark.promise("docs/forward.md", "with `sync` connections survive the loss of their node")
def test_connections_survive_the_loss_of_their_node(forward_pair: ForwardPair):
    """The active node has lost its power: both families go on, with the same servers, and new ones come."""
    pair = forward_pair
    with synced(pair):
        sessions = opened(pair, 20)
        assert {each.server.destination for each in pair.second.tracked()} == set(VIPS)
        pair.first.balancer.isolate()
        assert answers(sessions) == [each.server for each in sessions]
        assert {pair.second.ask(address) in pair.names for address in VIPS} == {True}
        for each in sessions:
            each.close()


def test_a_node_that_returns_takes_over_as_soon_as_it_has_all(forward_pair: ForwardPair):
    """The node of the higher priority starts last: it waits for the connections, and not for its time-out."""
    pair = forward_pair
    with pair.second.appliance(pair.config(priority=100, sync=True)) as second:
        wait_until(lambda: forwards_to(second, *pair.names), what="servers", timeout=30.0)
        pair.wait_for_holder(pair.second)
        sessions = [pair.first.session(address) for address in VIPS for _ in range(20)]
        with pair.first.appliance(pair.config(priority=150, sync=True)) as first:
            assert wait_until_informed(first) > 1
            pair.wait_for_holder(pair.first)
            assert answers(sessions) == [each.server for each in sessions]
        for each in sessions:
            each.close()


@SLOW
def test_they_move_there_and_back(forward_pair: ForwardPair):
    """A lost node that returns has all connections before it takes the virtual IPs; no move ends any."""
    pair = forward_pair
    with synced(pair) as (one, two):
        sessions = opened(pair, 10)
        pair.first.balancer.isolate()
        pair.wait_for_holder_alone(pair.second)
        assert answers(sessions) == [each.server for each in sessions]
        sessions += [pair.first.session(address) for address in VIPS]
        one.stop(patience=30.0)
        pair.first.forget_connections()
        pair.first.balancer.rejoin()
        with pair.first.appliance(pair.config(priority=150, sync=True)) as again:
            pair.wait_for_holder(pair.first)
            assert answers(sessions) == [each.server for each in sessions]
            wait_until(lambda: sync(again)["state"] == "synced", what="nodes hear each other")
            pair.move(again)
            pair.wait_for_holder(pair.second)
            assert answers(sessions) == [each.server for each in sessions]
            for each in sessions:
                each.close()
            wait_until(
                lambda: not any(each.open for each in pair.first.tracked() + pair.second.tracked()),
                what="all have ended on both nodes",
            )
        assert two.status()["ok"] is not None


@SLOW
def test_a_node_that_was_cut_off_goes_on(forward_pair: ForwardPair):
    """Both had the virtual IPs for a while: what went on at the other one, and began there, comes back.

    The one that was cut off reached no server meanwhile, and ended no connection for that.
    """
    pair = forward_pair
    with synced(pair) as (first, _):
        sessions = opened(pair, 10)
        pair.first.balancer.isolate()
        pair.wait_for_holder_alone(pair.second)
        wait_until(lambda: forwards_to(first), what="the first one has no server left")
        assert answers(sessions) == [each.server for each in sessions]
        late = [pair.first.session(address) for address in VIPS]
        wait_until(lambda: _ports(late) <= _known(pair.second), what="the second one has them")
        pair.first.balancer.rejoin()
        pair.wait_for_holder(pair.first)
        assert answers(sessions) == [each.server for each in sessions]
        for each in (*sessions, *late):
            each.close()


@SLOW
def test_three_nodes_one_after_another(forward_pair: ForwardPair):
    """Two nodes are lost, and the third one has what the first one began."""
    pair = forward_pair
    with synced(pair), third_node(pair, sync=True) as (field, third):
        wait_until(lambda: sync(third)["state"] == "synced", what="it has the others' connections")
        sessions = opened(pair, 10)
        wait_until(lambda: len(field.tracked()) >= len(sessions), what="the third node knows them")
        pair.first.balancer.isolate()
        assert answers(sessions) == [each.server for each in sessions]
        pair.second.balancer.isolate()
        assert answers(sessions) == [each.server for each in sessions]
        for each in sessions:
            each.close()


@pytest.mark.promise("docs/forward.md", "a conntrackd that ends or hangs is replaced")
@SLOW
@pytest.mark.parametrize("way", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "hung"])
def test_a_conntrackd_that_ends_or_hangs_is_replaced(forward_pair: ForwardPair, way: signal.Signals):
    """On either node: what it has missed is told by the next one."""
    pair = forward_pair
    with synced(pair) as both:
        for appliance in both:
            before = listening_process(appliance.paths.conntrackd_control)
            assert before
            os.kill(before, way)
            late = [pair.first.session(address) for address in VIPS]
            wait_until(
                lambda appliance=appliance, before=before: (  # type: ignore[misc]  # mypy and defaults
                    listening_process(appliance.paths.conntrackd_control) not in (None, 0, before)
                ),
                what="another one runs",
                timeout=40.0,
            )
            wait_until(
                lambda late=late: _ports(late) <= _known(pair.second),
                what="the other node knows what it missed",
                timeout=30.0,
            )
            for each in late:
                each.close()


@SLOW
def test_a_restart_of_forward_leaves_conntrackd(forward_pair: ForwardPair):
    """It goes on without the program, and the next run continues with it."""
    pair = forward_pair
    with synced(pair) as (one, _):
        before = listening_process(one.paths.conntrackd_control)
        one.wait_for_restart("forward", one.kill("forward"))
        wait_until(lambda: sync(one)["state"] == "synced", what="it goes on")
        assert listening_process(one.paths.conntrackd_control) == before
        sessions = opened(pair, 3)
        one.reload(pair.config(priority=150))
        wait_until(lambda: not listening_process(one.paths.conntrackd_control), what="it ends with the key")
        for each in sessions:
            assert each.asks() == each.server
            each.close()


@SLOW
@pytest.mark.promise("docs/taking-a-node-away.md", "with `sync` nothing is left on a node that has left")
def test_nothing_is_left_on_a_node_that_has_left(forward_pair: ForwardPair):
    """With `linger`, too, `leave` waits for none that the other node has: the node may go at once."""
    pair = forward_pair
    with synced(pair, sections={"linger": {"key": KEY}}) as (one, _):
        sessions = opened(pair, 5)
        said = json.loads(one.command("leave", "--within", "20s", "--json", check=False).stdout)
        assert (said["ok"], said["connections"]) == (True, 0), said
        pair.first.balancer.isolate()
        assert answers(sessions) == [each.server for each in sessions]
        for each in sessions:
            each.close()


@SLOW
def test_what_is_proxied_is_not_sent(forward_pair: ForwardPair):
    """At the same virtual IPs, by another frontend: only connections that the kernel forwards are learnt."""
    pair = forward_pair
    plain = {"bind": [f"{VIPS[0]}:{PROXIED}", f"[{VIPS[1]}]:{PROXIED}"], "pool": "servers"}
    with synced(pair, sections={"ingress": {"workers": 1, "frontends": {"plain": plain}}}):
        with pair.first.client.inside():
            proxied = [socket.create_connection((each, PROXIED), timeout=10) for each in VIPS]
        assert all(each.recv(1) for each in proxied)
        sessions = opened(pair, 3)
        with pair.second.balancer.inside(), contextlib.closing(Conntrack()) as conntrack:
            ports = Counter(each.client.destination_port for each in conntrack.connections(0, 0))
        assert (ports[PORT], ports[PROXIED]) == (len(sessions), 0)
        for each in (*proxied, *(each.socket for each in sessions)):
            each.close()


@SLOW
def test_a_stop_ends_no_connection(forward_pair: ForwardPair):
    """The other node goes on, and what this one forgets it tells nobody."""
    pair = forward_pair
    with synced(pair) as (one, _):
        sessions = opened(pair, 5)
        one.stop(patience=60.0)
        assert not pair.first.conntrack()
        assert answers(sessions) == [each.server for each in sessions]
        for each in sessions:
            each.close()


@SLOW
def test_peers_get_unicast(forward_pair: ForwardPair):
    """Where advertisements go to a peer, connections do; a node that hears nobody says so."""
    pair = forward_pair
    with pair.appliances(sync=True, unicast=True) as (one, two):
        pair.wait_for_holder(pair.first)
        for each in (one, two):
            wait_until(lambda each=each: sync(each)["state"] == "synced", what="nodes hear each other")
        sessions = opened(pair, 5)
        pair.first.balancer.isolate()
        assert answers(sessions) == [each.server for each in sessions]
        wait_until(lambda: sync(two)["state"] == "alone", what="it hears nobody")
        assert any("nothing is received" in str(each) for each in two.status()["problems"])  # type: ignore[attr-defined]  # JSON
        for each in sessions:
            each.close()


class _Asking:
    """Some connections that are asked all the time: how many wrong answers, and the longest pause."""

    def __init__(self, sessions: list[Session]) -> None:
        self.longest, self.wrong = 0.0, 0
        self._sessions, self._ends = sessions, threading.Event()
        self._thread = threading.Thread(target=self._ask)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()

    def _ask(self) -> None:
        while not self._ends.is_set():
            for each in self._sessions:
                begun = time.monotonic()
                self.wrong += answers([each]) != [each.server]
                self.longest = max(self.longest, time.monotonic() - begun)


@SLOW
def test_thousands_survive(forward_pair: ForwardPair):
    """99.9 % of them answer with the right server after the loss of their node, while some are asked always.

    `E2E_FULL=1` has 10,000 connections, whose node is lost 20 times, and returns.
    """
    pair = forward_pair
    with synced(pair) as (one, _), contextlib.ExitStack() as stack:
        first = one
        sessions = opened(pair, _COUNT)
        for turn in range(_TURNS):
            with _Asking(sessions[:50]) as asking:
                pair.first.balancer.isolate()
                found = answers(sessions[50:])
            alive = sum(said == each.server for said, each in zip(found, sessions[50:], strict=True))
            wrong = asking.wrong + len(found) - alive
            sys.stderr.write(f"turn {turn + 1}: {wrong} lost, longest pause {asking.longest:.2f} s\n")
            assert wrong <= 0.001 * len(sessions), f"{alive} of {len(found)}: {sorted(set(found))}"
            if turn + 1 < _TURNS:
                first.stop(patience=30.0)
                pair.first.forget_connections()
                pair.first.balancer.rejoin()
                first = stack.enter_context(pair.first.appliance(pair.config(priority=150, sync=True)))
                pair.wait_for_holder(pair.first)
                assert answers(sessions) == [each.server for each in sessions]
                wait_until(lambda: _ports(sessions) <= _known(pair.second), what="the other node knows them")
        for each in sessions:
            each.close()
