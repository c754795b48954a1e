"""`run --haproxy`: HAProxy's file is obeyed as it is, from before it exists until after it has gone."""

import contextlib
import dataclasses
import errno
import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.network.ports import free_port
from support.peers.backend import Backend
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance

pytestmark = pytest.mark.programs


class HaproxyPod:
    """An appliance in the place of OpenShift's HAProxy: no YAML, a file that somebody renders, its socket."""

    def __init__(self, appliance: Appliance) -> None:
        self.appliance = appliance
        self.port, self.ready_port = free_port(), free_port()
        root = appliance.paths.config.parent
        appliance.paths.config.unlink()
        self.file, self.socket = root / "haproxy.cfg", root / "haproxy-master.sock"
        appliance.paths = dataclasses.replace(
            appliance.paths, haproxy=(self.file,), reload_sockets=(self.socket,)
        )

    def render(self, *servers: int, more: str = "") -> None:
        """Write the file for servers at these ports of loopback."""
        lines = "".join(
            f"  server m{at} 127.0.0.1:{each} check inter 200ms\n" for at, each in enumerate(servers)
        )
        self.file.write_text(
            "defaults\n  mode tcp\n  timeout connect 1s\n  timeout client 1m\n  timeout server 1m\n"
            f"frontend main\n  bind 127.0.0.1:{self.port}\n  default_backend masters\n"
            f"frontend ready\n  bind 127.0.0.1:{self.ready_port}\n  mode http\n  monitor-uri /haproxy_ready\n"
            f"backend masters\n  balance roundrobin\n{lines}{more}"
        )

    def wait_until_it_listens(self) -> None:
        """Wait until both sockets are there."""
        sockets = (self.socket, self.appliance.paths.reload_socket)
        wait_until(lambda: all(each.exists() for each in sockets), what="it listens", timeout=30)

    def connect(self) -> socket.socket:
        """Return monitor's connection, which it makes once; it ends where there is no socket."""
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(self.socket))
        return connection

    def serves(self) -> bool:
        """Say whether a client gets something from a server."""
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 5) as client:
            client.sendall(b"GET / HTTP/1.0\r\n\r\n")
            return bool(client.recv(1))
        return False

    def problems(self) -> list[str]:
        """Return what `status` says is wrong, for which it exits with 1."""
        done = self.appliance.command("status", "--json", check=False)
        found: list[str] = json.loads(done.stdout)["problems"]
        assert done.returncode == (1 if found else 0)
        return found

    def waits(self) -> str:
        """Return what it waits for, as `status` says it."""
        return wait_until(
            lambda: next((each for each in self.problems() if each.startswith("waits for")), ""),
            what="status says what is waited for",
        )


@pytest.fixture
def pod() -> Iterator[HaproxyPod]:
    """Give one that was not started."""
    appliance = Appliance({})
    with contextlib.ExitStack() as stack:
        made = HaproxyPod(appliance)
        appliance.launch()
        stack.push(appliance.__exit__)
        made.wait_until_it_listens()
        yield made


@pytest.fixture
def backend() -> Iterator[Backend]:
    """Give a server."""
    with Backend("m0") as made:
        yield made


def refused(port: int) -> bool:
    """Say whether nobody listens."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == errno.ECONNREFUSED


def test_the_first_file_comes_after_the_start(pod: HaproxyPod, backend: Backend):
    """Monitor's first boot: it finds the socket, renders, says so on the connection that it holds."""
    assert f"{pod.file}: cannot be read: No such file" in pod.waits()
    assert "waits" in pod.appliance.command("alive").stdout, "a restart would only take the socket away"
    assert refused(pod.ready_port), "a 200 there would attract virtual IPs to a node that serves nothing"
    with pod.connect() as monitor:
        pod.render(backend.port)
        monitor.sendall(b"reload\n")
        wait_until(pod.serves, what="it serves")
        wait_until(lambda: not refused(pod.ready_port), what="it is ready")
        assert wait_until(lambda: not pod.problems(), what="status is good")
        pod.render(backend.port, backend.port)
        monitor.sendall(b"reload\n")
        wait_until(lambda: len(_servers(pod)) == 2, what="the second server is obeyed")


@pytest.mark.slow("a whole appliance for each situation")
def test_an_empty_file_is_waited_for_and_a_lost_line_does_not_matter(pod: HaproxyPod, backend: Backend):
    """A file that is truncated before it is rendered is waited for; no line is needed."""
    pod.file.touch()
    wait_until(lambda: "the file is empty" in pod.waits(), what="status says that it is empty", timeout=30)
    pod.appliance.wait_for_restart("reload", pod.appliance.kill("reload"))
    pod.waits()
    pod.render(backend.port)
    wait_until(pod.serves, what="it serves", timeout=30)
    assert not pod.appliance.events("reload-refused")


@pytest.mark.slow("a whole appliance for each situation")
def test_a_broken_first_file_is_waited_for_with_its_errors(pod: HaproxyPod, backend: Backend):
    """An end would take the socket away from whoever is to render the next file."""
    pod.render(backend.port, more="  nonsense here\n")
    with pod.connect() as monitor:
        monitor.sendall(b"reload\n")
        answer = json.loads(monitor.recv(1 << 16))
        line = len(pod.file.read_text().splitlines())
        assert [(each["source"], each["line"]) for each in answer["errors"]] == [(str(pod.file), line)]
        assert any(f"{pod.file} line {line}" in each for each in pod.problems())
        pod.render(backend.port)
        monitor.sendall(b"reload\n")
        wait_until(pod.serves, what="it serves")
        assert wait_until(lambda: not pod.problems(), what="status is good")


@pytest.mark.promise("docs/foreign-files.md", "an empty, broken or lost file takes nothing away")
def test_what_happens_to_the_file_later_takes_nothing_away(pod: HaproxyPod, backend: Backend):
    """Equal: unchanged. Broken, empty, gone: refused, and the accepted one goes on, over a new start too."""
    pod.render(backend.port)
    answer = pod.appliance.reload()
    assert answer["ok"], answer
    pod.file.write_text(pod.file.read_text().replace("  balance", "  # the same\n    balance"))
    assert pod.appliance.reload()["unchanged"] is True
    good = pod.file.read_text()
    for bad in (good.replace("balance", "balanse"), "", None):
        pod.file.unlink() if bad is None else pod.file.write_text(bad)
        assert pod.appliance.reload()["ok"] is False
        assert pod.serves()
        assert any("last reload was refused" in each for each in pod.problems())
    pod.render(backend.port, more="  nonsense\n")
    said = pod.appliance.command("reload", check=False)
    assert f"{pod.file}:{len(pod.file.read_text().splitlines())}:3: `nonsense`" in said.stderr
    pod.file.unlink()
    pod.appliance.stop(patience=30)
    pod.appliance.launch()
    pod.wait_until_it_listens()
    wait_until(pod.serves, what="the last good one serves", timeout=30)
    pod.file.write_text(good)
    assert pod.appliance.reload()["unchanged"] is True
    assert wait_until(lambda: not pod.problems(), what="status is good")


def _servers(pod: HaproxyPod) -> list[object]:
    found: list[object] = json.loads(pod.appliance.paths.accepted.read_text())["pools"][0]["servers"]
    return found


@pytest.mark.slow("the same way as above")
def test_keepalived_conf_is_followed_with_what_it_includes(tmp_path: Path):
    """The first file that `source` names is waited for, and a change of an included one needs no line."""
    included = tmp_path / "vip.conf"
    instance = (
        "vrrp_instance api {{\n  interface lo\n  virtual_router_id 51\n  priority {priority}\n"
        "  virtual_ipaddress {{ 192.0.2.200/32 }}\n}}\n"
    )
    included.write_text(instance.format(priority=40))
    source = {"keepalived": str(tmp_path / "keepalived.conf")}
    with Appliance({"source": source, "reload": {"watch": "200ms"}}) as appliance:
        assert "waits for a first configuration" in appliance.command("status", check=False).stdout
        (tmp_path / "keepalived.conf").write_text(f"include {tmp_path}/vip*.conf\n")
        wait_until(lambda: appliance.program_pid("vrrp"), what="vrrp runs", timeout=30)
        assert _priority(appliance) == 40
        included.write_text(instance.format(priority=41))
        wait_until(lambda: _priority(appliance) == 41, what="the change is obeyed", timeout=30)
        (tmp_path / "vip-2.conf").write_text("vrrp_instance b { virtual_router_id 300 }\n")
        wait_until(lambda: appliance.events("reload-refused"), what="the new file is refused", timeout=30)
        assert _priority(appliance) == 41


def _left_out(appliance: Appliance) -> object:
    return json.loads(appliance.command("status", "--json", check=False).stdout)["left_out"]


def _priority(appliance: Appliance) -> int:
    found = json.loads(appliance.paths.accepted.read_text())
    return int(found["virtual_routers"][0]["priority"]) if found["virtual_routers"] else 0


def test_sections_of_http_are_left_to_haproxy(backend: Backend, tmp_path: Path):
    """The others are served; status tells where nobody listens, which is no problem, and follows the file."""
    file, ports = tmp_path / "haproxy.cfg", [free_port() for _ in range(3)]

    def write(port: int) -> None:
        file.write_text(
            "defaults\n  mode http\n  timeout connect 1s\n  timeout client 1m\n  timeout server 1m\n"
            f"listen api\n  mode tcp\n  bind 127.0.0.1:{ports[0]}\n  server m0 127.0.0.1:{backend.port}\n"
            f"frontend web\n  bind 127.0.0.1:{port}\n  redirect scheme https\n"
        )

    write(ports[1])
    source = {"haproxy": str(file), "http": "skip"}
    with Appliance({"source": source, "reload": {"watch": "200ms"}}) as appliance:
        for port in ports[1:]:
            write(port)
            said = f"this appliance does not listen on 127.0.0.1:{port}"
            wait_until(lambda said=said: said in str(_left_out(appliance)), what="status says it", timeout=30)
            assert said in " ".join(appliance.command("check").stdout.split())
        wait_until(lambda: appliance.status()["problems"] == [], what="nothing is wrong", timeout=30)
        assert not refused(ports[0])
        assert refused(ports[2])
