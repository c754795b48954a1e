"""Checks in a network namespace without a free port: a shortage of ours is no verdict on the server."""

import os
import socket

import pytest
from support.network import few_ports
from support.values import snapshots

from appliance.net.probing.probe import Probe, ProbeImpossible
from appliance.net.probing.tls_contexts import TlsContexts

pytestmark = pytest.mark.kernel


@pytest.mark.skipif(os.geteuid() != 0, reason="a network namespace needs root")
def test_out_of_ports_is_no_verdict():
    """With every port in use a check is impossible, not failed; with a freed one it passes again."""
    few_ports.run_alone(__file__)


def _use_up() -> None:
    few_ports.limit_to_two()
    with socket.create_server(("127.0.0.1", 8080)) as server:
        address = server.getsockname()
        held = [socket.create_connection(address) for _ in range(2)]
        check = Probe(snapshots.check("tcp"), *address, TlsContexts())
        with pytest.raises(ProbeImpossible, match="no connection: Cannot assign requested address"):
            check.run()
        # A reset leaves no TIME_WAIT, so the port is free at once.
        held[0].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        held[0].close()
        assert check.run().passed


if __name__ == "__main__":
    _use_up()
