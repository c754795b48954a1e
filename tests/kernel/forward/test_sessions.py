"""Connections that the kernel forwards, as an operator sees and ends them: `sessions`, `show sess`, rates."""

import contextlib
import csv
import io
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.forward.forward_field import (
    PORT,
    SERVER_PORT,
    VIPS,
    ForwardField,
    Session,
    counts,
    wait_for_servers,
)
from support.processes.waiting import wait_until
from support.stats.haproxy_clients import get, socket_answer
from support.supervisor.appliance import Appliance, Values

from appliance.net.netlink.conntrack import Conntrack

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "nft", root=True)]

ALL = ("s1", "s2", "s3")
STATS = 29445
PROXIED = 9446


@pytest.fixture
def stats_socket() -> Iterator[Path]:
    """Where the stats socket is to be."""
    with tempfile.TemporaryDirectory(prefix="lb-stats-") as directory:
        yield Path(directory) / "stats.sock"


def sessions(appliance: Appliance, *options: str) -> list[Values]:
    """Return what `appliance sessions` lists."""
    found: list[Values] = json.loads(appliance.command("sessions", "--json", *options).stdout)
    return found


def count_more(balanced: ForwardField, word: str = "1") -> None:
    """Have the balancer's kernel count bytes and note when connections begin."""
    with balanced.balancer.inside():
        for each in ("acct", "timestamp"):
            Path(f"/proc/sys/net/netfilter/nf_conntrack_{each}").write_text(word)


def _servers(appliance: Appliance) -> dict[object, object]:
    """Return the servers of the listed connections, by client."""
    return {each["client"]: each["server"] for each in sessions(appliance)}


def name_of(session: Session) -> str:
    """Return the client's address and port as lists have them."""
    host, port = session.socket.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


@pytest.mark.promise("docs/forward.md", "the kernel forgets ended connections after 2 s")
def test_connections_that_have_ended_take_no_room(balanced: ForwardField):
    """The kernel remembers them for two seconds, and not for the 120 that are its own.

    So it does those of proxied frontends beside, to servers too, and checks. A check that began before the
    rules were there keeps the kernel's own time, which is over after a while.
    """
    six = {f"{name}v6": each for name, each in balanced.members(6).items()}
    config = balanced.config(pool={"servers": {**balanced.members(), **six}})
    config["api"]["frontends"]["proxied"] = {"bind": [f"[::]:{PROXIED}"], "pool": "servers"}  # type: ignore[index]  # JSON
    servers = {each for node in balanced.servers.values() for each in (node.address, node.address6)}
    clients = {(address, port) for address in VIPS for port in (PORT, PROXIED)}
    expected = {*clients, *((address, SERVER_PORT) for address in servers)}

    def forgotten_soon() -> bool:
        for address, port in clients:
            balanced.connect_from("", (address, port)).close()
        times = _remembered(balanced)
        return expected <= times.keys() and max(times.values()) <= 2

    with balanced.appliance(config) as appliance:
        wait_for_servers(appliance, *ALL, *six)
        wait_until(forgotten_soon, what="none has longer", timeout=30.0)


@pytest.mark.promise("docs/forward.md", "`nf_conntrack_tcp_timeout_established` holds")
def test_the_kernels_time_out_holds(balanced: ForwardField):
    """A client that vanishes holds its place for so long, and not for nft's five days."""
    setting = "nf_conntrack_tcp_timeout_established"
    with balanced.balancer.inside():
        Path(f"/proc/sys/net/netfilter/{setting}").write_text("600")
    with balanced.appliance(balanced.config()) as appliance:
        wait_for_servers(appliance, *ALL)
        with balanced.session():
            (tracked,) = (each for each in balanced.tracked() if each.established)
            assert 0 < (tracked.remaining or 0) <= 600


def _remembered(balanced: ForwardField) -> dict[tuple[str, int], int]:
    """Return for how many seconds connections that have ended are remembered at most, by destination."""
    with balanced.balancer.inside(), contextlib.closing(Conntrack()) as conntrack:
        tracked = conntrack.connections(0, 0)
    found: dict[tuple[str, int], int] = {}
    for each in tracked:
        if not (each.open or each.connecting):
            to = each.client.destination, each.client.destination_port
            found[to] = max(each.remaining or 0, found.get(to, 0))
    return found


@pytest.mark.slow("whole appliances on a segment of their own")
@pytest.mark.parametrize("address", VIPS)
def test_forwarded_connections_are_listed(balanced: ForwardField, address: str):
    """With client, frontend and server; and age and bytes where the kernel notes these, else null."""
    version = 6 if ":" in address else 4
    config = balanced.config(pool={"servers": balanced.members(version)})
    with balanced.appliance(config) as appliance:
        wait_for_servers(appliance, *ALL)
        count_more(balanced, "0")
        with balanced.session(address) as plain:
            (listed,) = sessions(appliance)
            assert (listed["frontend"], listed["client"]) == ("main", name_of(plain))
            assert (listed["server"], listed["phase"]) == (f"servers/{plain.server}", "forwarded")
            assert (listed["age"], listed["bytes_in"], listed["bytes_out"]) == (None, None, None)
            assert 0 <= listed["idle"] < 3600
            assert listed["remaining"] > 3600
        count_more(balanced)
        with balanced.session(address) as counted:
            mine = [each for each in sessions(appliance) if each["client"] == name_of(counted)]
            assert 0 <= mine[0]["age"] < 600
            assert mine[0]["bytes_in"] > 0 < mine[0]["bytes_out"]
            assert not sessions(appliance, "--server", "servers/other")
            assert "forwarded" in appliance.command("sessions").stdout


@pytest.mark.promise("kernel", "conntrack")
@pytest.mark.parametrize("address", VIPS)
def test_forwarded_connections_are_killed(balanced: ForwardField, address: str):
    """By id, by server and by client: both ends are reset at once, conntrack forgets, others go on."""
    version = 6 if ":" in address else 4
    config = balanced.config(pool={"servers": balanced.members(version)})
    with balanced.appliance(config) as appliance:
        balanced.wait_for(*ALL, address=address)
        opened = [balanced.session(address) for _ in range(9)]
        wait_until(lambda: len(sessions(appliance)) == len(opened), what="only these are open")
        first = opened.pop()
        by_client = {each["client"]: str(each["id"]) for each in sessions(appliance)}
        assert appliance.command("sessions", "kill", by_client[name_of(first)]).stdout == "1 killed\n"
        assert first.ends() in ("reset", "closed")
        assert name_of(first) not in {each["client"] for each in sessions(appliance)}
        gone = appliance.command("sessions", "kill", by_client[name_of(first)], check=False)
        assert (gone.returncode, gone.stdout) == (1, "0 killed\n")

        lost = [each for each in opened if each.server == "s1"]
        kept = [each for each in opened if each.server != "s1"]
        assert lost
        said = appliance.command("sessions", "kill", "--server", "servers/s1").stdout
        assert said == f"{len(lost)} killed\n"
        assert {each.ends() for each in lost} <= {"reset", "closed"}
        assert [each.asks() for each in kept] == [each.server for each in kept]

        elsewhere = appliance.command("sessions", "kill", "--source", "203.0.113.0/24", check=False)
        assert elsewhere.stdout == "0 killed\n"
        source = f"{kept[0].socket.getsockname()[0]}"
        assert appliance.command("sessions", "kill", "--source", source).stdout == f"{len(kept)} killed\n"
        assert {each.ends() for each in kept} <= {"reset", "closed"}
        wait_until(lambda: not sessions(appliance), what="nothing is listed")
        for each in (first, *opened):
            each.close()


@pytest.mark.slow("whole appliances on a segment of their own")
def test_a_server_that_left_is_known_as_long_as_its_connections(balanced: ForwardField):
    """After a reload without it they are listed with its name."""
    members = balanced.members()
    with balanced.appliance() as appliance:
        balanced.wait_for(*ALL)
        opened = [balanced.session() for _ in range(6)]
        left = {name: each for name, each in members.items() if name != "s1"}
        assert appliance.reload(balanced.config(pool={"servers": left}))["ok"]
        wait_for_servers(appliance, "s2", "s3")
        expected = {name_of(each): f"servers/{each.server}" for each in opened}
        wait_until(lambda: _servers(appliance) == expected, what="these are listed, and their servers")
        for each in opened:
            each.close()


@pytest.mark.slow("whole appliances on a segment of their own")
def test_kernel_and_proxy_are_one_list(balanced: ForwardField, stats_socket: Path):
    """`sessions` and HAProxy's `show sess` have both, and `shutdown sessions server` ends both."""
    config = balanced.config()
    config["api"]["frontends"]["proxied"] = {"bind": [f"[::]:{PROXIED}"], "pool": "servers"}  # type: ignore[index]  # JSON
    config["stats"] = {"bind": f"127.0.0.1:{STATS}", "socket": str(stats_socket)}
    only = {"s1": balanced.members()["s1"]}
    config["pools"]["servers"]["servers"] = only  # type: ignore[index]  # JSON
    with balanced.appliance(config) as appliance:
        wait_for_servers(appliance, "s1")
        forwarded = balanced.session()
        proxied = balanced.connect_from(balanced.client.address, (VIPS[0], PROXIED))
        assert {each["frontend"] for each in sessions(appliance)} == {"main", "proxied"}
        wait_until(stats_socket.exists, what="the stats socket is there")
        shown = socket_answer(stats_socket, "show sess\n").splitlines()
        (line,) = (each for each in shown if " fe=main " in each)
        assert line.startswith("kernel-")
        assert f"src={name_of(forwarded)} fe=main be=servers srv=s1 age=" in line
        assert any(" fe=proxied be=servers srv=s1 " in each for each in shown)
        assert socket_answer(stats_socket, "shutdown sessions server servers/s1\n").strip() == ""
        assert forwarded.ends() in ("reset", "closed")
        wait_until(lambda: not sessions(appliance), what="no session is left")
        forwarded.close()
        proxied.close()


@pytest.mark.slow("whole appliances on a segment of their own")
def test_rates_and_peaks_are_those_of_a_proxy(balanced: ForwardField, stats_socket: Path):
    """New connections a second of frontend, pool and servers, in CSV and as metrics; 0 afterwards."""
    config = balanced.config()
    config["stats"] = {"bind": f"127.0.0.1:{STATS}", "socket": str(stats_socket)}

    def rows() -> dict[str, dict[str, str]]:
        text = socket_answer(stats_socket, "show stat\n").removeprefix("# ")
        found = csv.DictReader(io.StringIO(text.strip()))
        return {row["svname"]: row for row in found if row["pxname"] in ("main", "servers")}

    with balanced.appliance(config) as appliance:
        balanced.wait_for(*ALL)
        wait_until(stats_socket.exists, what="the stats socket is there")
        with balanced.clients() as clients:
            clients.wait_for_more(50)
            wait_until(
                lambda: all(int(rows()[each]["rate"]) > 0 for each in ("FRONTEND", "BACKEND", *ALL)),
                what="rates of all",
            )
            assert clients.stop().errors == {}
        with balanced.balancer.inside():
            page = get(f"http://127.0.0.1:{STATS}/metrics")[1]
        assert 'haproxy_frontend_max_session_rate{proxy="main"} 0\n' not in page
        assert 'haproxy_frontend_max_session_rate{proxy="main"}' in page
        wait_until(
            lambda: {rows()[each]["rate"] for each in ("FRONTEND", "BACKEND", *ALL)} == {"0"},
            what="no rate without connections",
        )
        assert int(rows()["FRONTEND"]["rate_max"]) > 0
        assert counts(appliance, "s1")["total"] > 0
