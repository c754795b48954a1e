"""A container with the settings of the unit that we ship: serves, reloads, drains, and has few rights."""

import concurrent.futures
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.machines.container_site import API, VIP, Site, say, site
from support.machines.podman import Container, measured
from support.processes.waiting import wait_until

pytestmark = [pytest.mark.image, pytest.mark.needs("podman", "runc", "mmdebstrap", "ip", root=True)]

_USER = "9445"
_CAPABILITIES = {10: "NET_BIND_SERVICE", 12: "NET_ADMIN", 13: "NET_RAW", 14: "IPC_LOCK", 23: "SYS_NICE"}
_VRRP = {"NET_ADMIN", "NET_RAW", "IPC_LOCK", "SYS_NICE"}
_IN_EFFECT: dict[str, set[str]] = {
    "supervisor": set(),
    "reload": {"NET_BIND_SERVICE"},
    "health": set(),
    "proxy": {"NET_BIND_SERVICE"},
    "nursery": set(),
    "worker": set(),
    "vrrp": _VRRP,
    "tracker": set(),
}
_PARENTS = {"/etc", "/etc/appliance", "/run", "/run/appliance", "/var", "/var/lib", "/var/lib/appliance"}
"""Folders of mounts, and of what may change."""


def _status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}


def _set(status: dict[str, str], name: str) -> set[str]:
    bits = int(status[name], 16)
    return {_CAPABILITIES.get(number, str(number)) for number in range(64) if bits >> number & 1}


def _program(command: str) -> str:
    return next(
        (word.rpartition(".")[2] for word in command.split() if word.startswith("appliance.")), command
    )


def _everybody(container: Container) -> dict[int, str]:
    """Return what each process of the appliance is."""
    return {
        pid: _program(command) for pid, command in container.processes().items() if command != "/bin/true"
    }


@pytest.fixture(scope="module")
def shared(image: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, Container]]:
    """A container that serves, for tests that leave it as it is."""
    del image
    with site(tmp_path_factory.mktemp("site")) as made:
        started = time.monotonic()
        with made.container(made.one, config=made.write(made.config())) as container:
            made.serves(made.one.address)
            first = time.monotonic() - started
            measured(f"first proxied byte {first:.1f} s after podman run")
            made.serves(VIP)
            yield made, container


@pytest.mark.promise("container", "serves on high and low ports and on a virtual IP")
def test_serves_on_all_ports(shared: tuple[Site, Container]):
    """Clients get answers on a high port and a low one, at the machine's address and at the virtual one."""
    around, _ = shared
    for address in (around.one.address, VIP):
        for port in (API, 80):
            assert around.who(address, port).startswith("master-")


@pytest.mark.promise("container", "runs as one ordinary user with few capabilities")
def test_user_and_capabilities_of_every_process(shared: tuple[Site, Container]):
    """All processes are the same ordinary user; each has in effect what it uses, and its children nothing."""
    _, container = shared
    programs = _everybody(container)
    assert set(programs.values()) == set(_IN_EFFECT)
    for pid, program in programs.items():
        status = _status(pid)
        assert set(status["Uid"].split()) == set(status["Gid"].split()) == {_USER}, program
        assert status["NoNewPrivs"] == "1", program
        assert _set(status, "CapEff") == _IN_EFFECT[program], program
        if program != "supervisor":  # which carries them for those that it starts
            assert _set(status, "CapPrm") == _IN_EFFECT[program], program
            assert not _set(status, "CapInh") | _set(status, "CapAmb"), program


def test_health_check(shared: tuple[Site, Container]):
    """The health check of the image asks the endpoint that is configured for it."""
    _, container = shared
    assert container.exec("appliance", "alive").stdout == "ready at [::]:9444: answers 200\n"


def test_status(shared: tuple[Site, Container]):
    """`appliance status` finds nothing wrong, as soon as the last program has started."""
    _, container = shared
    wait_until(
        lambda: container.exec("appliance", "status", check=False).returncode == 0,
        what="status finds nothing wrong",
    )


@pytest.mark.promise("container", "a reload keeps sessions")
def test_reload_keeps_sessions(around: Site):
    """A reload of the mounted file takes effect, and a session goes on; a broken file changes nothing."""
    folder = around.write(around.config())
    with around.container(around.one, config=folder) as container:
        around.serves(around.one.address)
        with around.connect(around.one.address) as session:
            assert say(session, "before").endswith("before")
            changed = around.config()
            changed["ingress"] = {"frontends": {"http": {"bind": ["[::]:81"], "pool": "masters"}}}
            around.write(changed)
            container.exec("appliance", "reload")  # unless `reload: { watch }` was faster
            around.serves(around.one.address, 81)
            around.write("api: {frontends: {kube-api: {bind: [9445], pool: none}}}")
            refused = container.exec("appliance", "reload", check=False)
            assert refused.returncode == 1
            assert "/etc/appliance/appliance.yaml:1:" in refused.stderr
            assert say(session, "after").endswith("after")


@pytest.mark.promise("container", "a stop drains, and leaves no virtual IP")
def test_stop_drains_and_leaves_no_virtual_ip(around: Site):
    """At `podman stop` the virtual IP goes at once, a session may end, and then the container ends with 0."""
    config = around.write(around.config(drain="20s"))
    with (
        around.container(around.one, config=config) as container,
        concurrent.futures.ThreadPoolExecutor() as threads,
    ):
        around.serves(VIP)
        with around.connect(around.one.address) as session:
            say(session, "before")
            stopping = threads.submit(container.stop, 30)
            wait_until(lambda: not around.one.holds(VIP), what="the virtual IP is gone")
            wait_until(lambda: not around.who(around.one.address), what="nobody new is let in")
            assert say(session, "draining").endswith("draining")
            assert not stopping.done()
        assert stopping.result() < 20
        assert container.exit_code() == 0
        assert not around.one.holds(VIP)


@pytest.mark.slow("waits for the drain time")
def test_stop_cuts_what_does_not_end(around: Site):
    """A session that does not end is cut at the end of the drain time, within podman's grace."""
    config = around.write(around.config(drain="2s"))
    with around.container(around.one, config=config) as container:
        around.serves(around.one.address)
        with around.connect(around.one.address) as session:
            say(session, "before")
            container.stop(30)
            assert container.exit_code() == 0
            assert '"drain-cut"' in container.log()


@pytest.mark.slow("starts a container twice")
def test_killed_container_leaves_nothing_for_long(around: Site):
    """What a killed container left on the machine's interface is removed by the next one."""
    with around.container(around.one, config=around.write(around.config())) as container:
        around.serves(VIP)
        container.kill()
        assert around.one.holds(VIP)
    elsewhere = around.config()
    elsewhere["virtual_ips"] = {
        "other": {"addresses": ["192.0.2.101/24"], "interface": "eth0", "router_id": 52, "priority": 100}
    }
    with around.container(around.one, config=around.write(elsewhere)):
        wait_until(lambda: not around.one.holds(VIP), what="the virtual IP is gone", timeout=30)


def test_writes_only_where_it_may(around: Site):
    """With a root file system that could be written nothing changes but the runtime directory."""
    config = around.write(around.config())
    with around.container(
        around.one, "--cap-add", "NET_BIND_SERVICE", config=config, plain=True
    ) as container:
        around.serves(around.one.address, 80)
        changed = around.config()
        changed["defaults"] = {"drain": "1s"}
        around.write(changed)
        container.exec("appliance", "reload")
        container.exec("appliance", "alive")
        container.stop(30)
        files = {line.split()[1] for line in container.changed_files()}
        assert {each for each in files if not each.startswith("/run/appliance/")} <= _PARENTS


def _empty_dir(path: Path) -> Path:
    """Return a folder as a kubelet makes it: root's, and everybody may write."""
    path.mkdir()
    path.chmod(0o777)
    return path


@pytest.mark.slow("one more start of a container")
def test_in_place_of_openshifts_haproxy(around: Site):
    """With what the static pod gives it, and that is no capability, it serves and obeys the same socket."""
    config = around.config(reload={"sockets": ["/var/run/haproxy/haproxy-master.sock"]})
    del config["ingress"], config["virtual_ips"]
    folder = around.write(config)
    sockets, runtime, state = (_empty_dir(around.folder / name) for name in ("sockets", "runtime", "state"))
    pod = ("--user", "9445:9445", "--cap-drop", "all", "--security-opt", "no-new-privileges", "--read-only")
    mounts = (
        "--read-only-tmpfs=false",
        *("--volume", f"{runtime}:/run/appliance", "--volume", f"{state}:/var/lib/appliance"),
        *("--volume", f"{folder}:/etc/haproxy", "--volume", f"{sockets}:/var/run/haproxy"),
        *("--env", "APPLIANCE_CONFIG=/etc/haproxy/appliance.yaml"),
    )
    with around.container(around.one, *pod, *mounts, config=folder, plain=True):
        around.serves(around.one.address)
        path = sockets / "haproxy-master.sock"
        wait_until(path.exists, what="the reload socket is there")
        with socket.socket(socket.AF_UNIX) as monitor:
            monitor.settimeout(30)
            monitor.connect(str(path))
            monitor.sendall(b"reload\n")
            assert json.loads(monitor.recv(65536))["ok"] is True


@pytest.mark.promise("container", "started as root it becomes its user")
def test_started_as_root_it_becomes_its_user(around: Site):
    """Where only root can be given capabilities everything becomes the ordinary user's."""
    config = around.write(around.config())
    state = around.folder / "state"
    state.mkdir()
    rights = ("--cap-add", "SETUID,SETGID,CHOWN", "--user", "0", "--volume", f"{state}:/var/lib/appliance")
    with around.container(around.one, *rights, config=config) as container:
        around.serves(VIP, 80)
        programs = _everybody(container)
        assert {_status(pid)["Uid"].split()[0] for pid in programs} == {_USER}
        assert {name for pid, name in programs.items() if _set(_status(pid), "CapEff")} == {
            "reload", "proxy", "vrrp",
        }  # fmt: skip
        assert container.exec("appliance", "alive").returncode == 0
        assert str(state.stat().st_uid) == _USER
