"""A worker in a network namespace with hardly any ports: running out of them has a defined outcome."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.worker.trace import Origin, Relay, Setting, relay, reset

from appliance.model.end_reasons import EndReason

pytestmark = pytest.mark.kernel

_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")


@pytest.mark.skipif(os.geteuid() != 0, reason="a network namespace needs root")
def test_out_of_ports_refuses_and_recovers():
    """Beyond the last port a client is refused, with the reason counted; a freed port serves the next one."""
    ran = subprocess.run(
        ["unshare", "--net", "sh", "-c", f"ip link set lo up && exec {sys.executable} {__file__}"],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        timeout=60,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def _use_up(running: Relay) -> None:
    # Clients bind ports of their own: the two that the kernel may give are the worker's.
    _PORTS.write_text("50000 50001")
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
