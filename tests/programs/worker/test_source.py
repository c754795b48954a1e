"""`source: virtual-ip` in a worker: what servers see, from reload to reload."""

from dataclasses import replace

import pytest
from support.processes.log_lines import logged
from support.values.snapshots import virtual_router
from support.worker.trace import Origin, Relay, Setting, relay

from appliance.model.snapshot.pools import SourceAddress
from appliance.model.snapshot.snapshot import Snapshot, encode

pytestmark = [pytest.mark.programs, pytest.mark.data_path]

VIRTUAL_IP = "127.0.0.9"
PORTS = (20000, 29999)


def _setting(ports: tuple[int, int] = PORTS, address: str = VIRTUAL_IP, **changes: object) -> Setting:
    return Setting(
        origins=[Origin()],
        host=VIRTUAL_IP,
        back={"source": SourceAddress.VIRTUAL_IP, "source_ports": ports, **changes},
        changes={"virtual_routers": [virtual_router(addresses=(f"{address}/24",))]},
    )


def _seen(running: Relay) -> tuple[str, int]:
    """Return the address and port that the server sees of a new client, whose bytes are passed on."""
    client = running.connect()
    client.sendall(b"hello")
    server = running.setting.origins[0].accept()
    assert server.recv(10) == b"hello"
    host, port = server.getpeername()
    client.close()
    server.close()
    return host, port


def _obey(running: Relay, snapshot: Snapshot) -> None:
    running.worker.paths.snapshot(snapshot.number).write_bytes(encode(snapshot))
    assert running.worker.ask("apply", snapshot=snapshot.number)["ok"]


def test_servers_see_the_virtual_ip_until_a_reload_says_otherwise():
    """A live change of `source` and of the virtual IPs applies to the next connection."""
    setting = _setting()
    given = setting.snapshot()
    with relay(setting) as running:
        host, port = _seen(running)
        assert host == VIRTUAL_IP
        assert PORTS[0] <= port <= PORTS[1]
        _obey(running, replace(given, number=2, pools=(replace(given.pools[0], source=SourceAddress.NODE),)))
        assert _seen(running)[0] == "127.0.0.1"
        _obey(running, replace(given, number=3))
        assert _seen(running)[0] == VIRTUAL_IP
        _obey(running, replace(given, number=4, virtual_routers=()))
        assert _seen(running)[0] == "127.0.0.1"


@pytest.mark.slow("another failure")
def test_out_of_ports_clients_are_served_and_the_log_tells_once():
    """The only port is in use: two more clients are connected from the node, and one line says it."""
    with relay(_setting(ports=(20000, 20000))) as running:
        pairs = [running.pair() for _ in range(3)]

        assert [server.getpeername()[0] for _, server in pairs] == [VIRTUAL_IP, "127.0.0.1", "127.0.0.1"]
        told = logged(running.worker.paths.runtime / "log", "source-unavailable")
        assert [(each["virtual_ip"], each["reason"]) for each in told] == [(VIRTUAL_IP, "no free port")]
        assert running.reasons() == {}
