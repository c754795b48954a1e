"""The line that `log.connections` writes for each connection."""

import pytest
from support.processes.log_lines import logged
from support.worker.trace import Origin, Setting, is_reset, relay

from appliance.model.snapshot.snapshot import Log

pytestmark = pytest.mark.programs


def test_connection_lines_say_how_it_ended():
    """With log.connections each connection is one line with HAProxy's letters, times and bytes."""
    changes = {"log": Log(level="info", format="json", connections=True)}
    with relay(Setting(origins=[Origin()], changes=changes)) as running:
        client, server = running.pair()
        client.sendall(b"12345")
        assert server.recv(10) == b"12345"
        server.sendall(b"123")
        assert client.recv(10) == b"123"
        name = f"127.0.0.1:{client.getsockname()[1]}"
        client.close()
        server.close()
        running.until(lambda: logged(running.log(), "connection"), "the line is there")
        line = logged(running.log(), "connection")[0]
        expected = {
            "frontend": "front",
            "client": name,
            "pool": "pool",
            "server": "s0",
            "reason": "completed",
            "termination": "--",
            "bytes_in": 5,
            "bytes_out": 3,
            "retries": 0,
        }
        assert expected.items() <= line.items()
        assert {"queue_s", "connect_s", "total_s"} <= line.keys()


def test_connection_line_of_a_failed_connect_names_the_server():
    """Lines have no level to be filtered by; the server is the last one tried, no retry is queue time."""
    changes = {"log": Log(level="error", format="json", connections=True)}
    gone = Origin()
    gone.close()
    back = {"retries": 1, "timeout_connect": 0.5}
    with relay(Setting(origins=[gone], back=back, changes=changes)) as running:
        assert is_reset(running.connect())
        running.until(lambda: logged(running.log(), "connection"), "the line is there")
        (line,) = logged(running.log())
        expected = {
            "event": "connection",
            "program": "proxy-api",
            "generation": 1,
            "server": "s0",
            "reason": "connect-refused",
            "termination": "SC",
            "connect_s": -1.0,
            "retries": 1,
        }
        assert expected.items() <= line.items()
        assert line["queue_s"] == 0.0
        assert line["total_s"] >= 0.5
