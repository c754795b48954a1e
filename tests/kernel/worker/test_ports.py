"""A worker in a network namespace with hardly any ports: running out of them has a defined outcome."""

import os

import pytest
from support.network import few_ports
from support.worker.trace import Origin, Relay, Setting, relay, reset

from appliance.model.end_reasons import EndReason

pytestmark = [pytest.mark.kernel, pytest.mark.slow("load on a segment of its own")]


@pytest.mark.skipif(os.geteuid() != 0, reason="a network namespace needs root")
def test_out_of_ports_refuses_and_recovers():
    """Beyond the last port a client is refused, with the reason counted; a freed port serves the next one."""
    few_ports.run_alone(__file__)


def _use_up(running: Relay) -> None:
    # Clients bind ports of their own: the two that the kernel may give are the worker's.
    few_ports.limit_to_two()
    pairs = []
    for number in range(2):
        client = running.connect(source="127.0.0.1", source_port=40000 + number)
        pairs.append((client, running.setting.origins[0].accept()))
    assert running.refuses(source_port=40002)
    running.ended(EndReason.NO_PORTS, 2)  # the first try and its repetition
    reset(pairs[0][0])
    running.ended(EndReason.CLIENT_ABORT)
    client = running.connect(source="127.0.0.1", source_port=40003)
    client.sendall(b"served")
    assert running.setting.origins[0].accept().recv(10) == b"served"


if __name__ == "__main__":
    with relay(Setting(origins=[Origin()], back={"retries": 1, "timeout_connect": 0.2})) as started:
        _use_up(started)
