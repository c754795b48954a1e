"""The reading of other nodes' reports: a bug in it ends the program, which starts again."""

import socket
from secrets import token_bytes

import gevent
import pytest
import structlog
from support.network.ports import free_port

from appliance.core.linger.nodes import Nodes
from appliance.linger.address_reports import Reports
from appliance.linger.address_sets import AddressSet
from appliance.net.packets.report_sockets import ReportReceiver

pytestmark = pytest.mark.sockets


def test_a_bug_in_the_reading_is_a_fault(monkeypatch: pytest.MonkeyPatch):
    """Without the reading a node would count all others as dead, and answer for what is theirs."""

    def broken(_receiver: ReportReceiver) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(ReportReceiver, "receive", broken)
    faults: list[BaseException | None] = []
    port = free_port()
    reports = Reports(
        [AddressSet(interface="lo", family=4, routers={}, peers=(), multicast=False)],
        port=port,
        secrets=[bytes(16)],
        nodes=Nodes(token_bytes),
        on_news=lambda: None,
        log=structlog.get_logger(),
    )
    reports.link_fault(faults.append)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender, gevent.Timeout(10):
        sender.sendto(b"anything", ("127.0.0.1", port))
        while not faults:
            gevent.sleep(0.01)
    reports.close()
    assert [type(each) for each in faults] == [ZeroDivisionError]
