"""Somebody on the segment who sends recorded reports of a node again, without its key."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

import pytest
from support.linger.linger_field import (
    COUNT,
    PERIOD,
    LingerNode,
    SteadyClients,
    moved,
    pair,
    wait_until_ready,
)
from support.network.namespaces import INTERFACE, Node
from support.processes.waiting import patient, wait_until

from appliance.wire.linger_report import NAME, ReportDrop

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.needs("ip", "nft", root=True),
    pytest.mark.slow("whole appliances on a segment of their own, and a node that has to be found silent"),
]

_IPV4 = 0x0800
_REPORTS = NAME + b"2"
_PAUSE = 0.2
"""Seconds between two looks, each with a replay: the node itself reports less often."""

_REPLAYS = 15

_OFTEN = 0.1
"""Seconds between two replays of one report while nodes are looked at."""

_MANY = 60
"""Replays that take longer than a node waits until it calls another one deaf."""


@pytest.mark.promise("docs/virtual-ips.md", "reports cannot be replayed")
def test_recorded_reports_are_not_believed():
    """Neither one of an earlier session nor one of this: led sessions go on, and a dead node stays dead.

    The earlier one says that its node has no connections; believed, it would have them led nowhere.
    """
    with pair() as (client, one, two):
        earlier = _recorded(client, of=two.node)
        two.appliance.wait_for_restart("linger", two.appliance.kill("linger"))
        wait_until_ready([one, two])
        moved(one, two)
        recent = _recorded(client, of=two.node)
        with (
            SteadyClients(client, count=COUNT, period=PERIOD) as led,
            SteadyClients(client, count=COUNT, period=3600.0) as lost,
        ):
            moved(two, one)
            wait_until(lambda: two.kept().get("connections") == 2 * COUNT, what="two keeps them")
            for frame, reason in ((earlier, ReportDrop.UNPROVED), (recent, ReportDrop.REPLAY)):
                before = _refused(one, reason)
                _until(
                    lambda reason=reason, before=before: _refused(one, reason) >= before + _REPLAYS,
                    what=f"they are refused: {reason}",
                    client=client,
                    frames=[frame],
                )
            assert two.node.address in one.others()
            assert not one.status()["trouble"]
            assert not two.status()["trouble"]
            seen = led.end()
            assert (seen["ended"], seen["by"]) == (0, {"two": COUNT})
            two.node.isolate()
            _until(
                lambda: one.kept().get("active") is True and not one.others(),
                what="two counts as gone",
                client=client,
                frames=[earlier, recent],
            )
            lost.ask()
            assert lost.end()["ended"] == COUNT
            two.node.rejoin()


@pytest.mark.promise("docs/virtual-ips.md", "a replay hides no running node")
def test_replays_of_an_earlier_session_leave_the_running_one_alone():
    """Both nodes know all the time that they are heard; one that restarts meanwhile is accepted again."""
    with pair() as (client, one, two):
        earlier = _recorded(client, of=two.node)
        two.appliance.wait_for_restart("linger", two.appliance.kill("linger"))
        wait_until_ready([one, two])
        recent = _recorded(client, of=two.node)
        with _replayed(client, [earlier, recent]):
            _look_for_trouble(one, two)
            two.appliance.wait_for_restart("linger", two.appliance.kill("linger"))
            wait_until(lambda: one.node.address in two.others(), what="two accepts one")
            moved(one, two)
            wait_until(lambda: two.kept().get("followers"), what="one accepts two")
            moved(two, one)
            _look_for_trouble(one, two)


def _look_for_trouble(one: LingerNode, two: LingerNode) -> None:
    """Look at both nodes while `one` refuses many replays: neither has any trouble."""
    before = _refused(one, ReportDrop.UNPROVED)

    def seen() -> bool:
        assert [each.status()["trouble"] for each in (one, two)] == ["", ""]
        return _refused(one, ReportDrop.UNPROVED) >= before + _MANY

    wait_until(seen, what="many replays are refused", timeout=30.0)


def _recorded(client: Node, *, of: Node) -> bytes:
    """Return the frame of the next report of a node, as the client would send it.

    It has no UDP checksum, which the kernel had left to a network card that is not there (RFC 768: optional).
    """
    with client.inside(), socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as hearing:
        hearing.bind((INTERFACE, _IPV4))
        hearing.settimeout(patient(10.0))
        heard = (hearing.recv(2048) for _ in range(1000))
        source = socket.inet_aton(of.address)
        frame = next(each for each in heard if each[26:30] == source and each[42:46] == _REPORTS)
    return frame[:6] + bytes.fromhex(client.mac.replace(":", "")) + frame[12:40] + bytes(2) + frame[42:]


@contextlib.contextmanager
def _replayed(client: Node, frames: list[bytes]) -> Iterator[None]:
    """Have the client send frames all the time, whatever the test waits for."""
    over = threading.Event()
    with client.inside():
        sending = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)

    def send() -> None:
        while not over.wait(_OFTEN):
            for each in frames:
                sending.send(each)

    with sending:
        sending.bind((INTERFACE, 0))
        thread = threading.Thread(target=send)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def _until(condition: Callable[[], bool], *, what: str, client: Node, frames: list[bytes]) -> None:
    """Have the client send frames all the time, until a condition holds."""
    with client.inside(), socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sending:
        sending.bind((INTERFACE, 0))

        def sent() -> bool:
            for each in frames:
                sending.send(each)
            return condition()

        wait_until(sent, what=what, timeout=30.0, pause=_PAUSE)


def _refused(node: LingerNode, reason: ReportDrop) -> int:
    """Return how many reports a node has not believed for this reason."""
    drops = node.status().get("drops", {})
    assert isinstance(drops, dict)
    return int(drops.get(reason.value, 0))
