"""`config/appliance.service` with a real systemd: it starts, reloads, comes back, and stops in order."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.machines.podman import ROOT
from support.machines.systemd_machine import SystemdMachine, systemd_machine
from support.processes.waiting import wait_until

pytestmark = [
    pytest.mark.image,
    pytest.mark.needs("podman", "runc", "mmdebstrap", "systemd-nspawn", "nsenter", root=True),
    pytest.mark.slow("boots systemd in a container"),
]

_UNIT = "appliance.service"
_CONFIG = "/etc/appliance/appliance.yaml"
_VIP = "192.0.2.100"
_YAML = f"""\
api:
  frontends:
    kube-api: {{ bind: ["127.0.0.1:9445"], pool: masters }}
pools:
  masters: {{ check: {{ type: tcp }}, servers: {{ master-0: {{ address: "127.0.0.1:6443" }} }} }}
virtual_ips:
  api: {{ addresses: ["{_VIP}/24"], interface: lan, router_id: 42, version: 3, advert: 200ms }}
"""
_LONG = 120.0


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SystemdMachine]:
    """A machine that was told to enable the unit, with an interface for the virtual IP."""
    files = {
        "etc/systemd/system/appliance.service": (ROOT / "config/appliance.service").read_text(),
        _CONFIG.lstrip("/"): _YAML,
    }
    folder: Path = tmp_path_factory.mktemp("systemd")
    with systemd_machine(folder, files) as made:
        made.run("ip", "link", "add", "lan", "type", "veth", "peer", "name", "wire")
        made.run("ip", "link", "set", "wire", "up")
        made.run("ip", "address", "add", "192.0.2.10/24", "dev", "lan")
        made.run("ip", "link", "set", "lan", "up")
        yield made


@pytest.fixture
def serving(machine: SystemdMachine) -> SystemdMachine:
    """It runs, and has the virtual IP."""
    machine.run("systemctl", "start", _UNIT)
    wait_until(lambda: _has_vip(machine), what="it has the virtual IP", timeout=_LONG)
    return machine


def _has_vip(machine: SystemdMachine) -> bool:
    return f" {_VIP}/24 " in machine.says("ip", "-oneline", "address", "show", "dev", "lan")


def _journal(machine: SystemdMachine) -> str:
    return machine.says("journalctl", "--unit", _UNIT, "--output", "cat", "--no-pager")


def _main(machine: SystemdMachine) -> int:
    return int(machine.show(_UNIT, "MainPID"))


@pytest.mark.promise("docs/installing.md", "the unit of systemd runs it as its user")
def test_it_runs_as_its_user_with_what_it_needs(serving: SystemdMachine):
    """Ready is said when it serves; no process is root's, and none may gain what it has not."""
    assert serving.show(_UNIT, "ActiveState") == "active"
    users = {
        each.split()[0]
        for each in serving.says("ps", "-eo", "user:20,args").splitlines()
        if "appliance.programs" in each
    }
    assert users == {"appliance"}
    status = serving.says("cat", f"/proc/{_main(serving)}/status")
    assert "NoNewPrivs:\t1" in status
    assert serving.run("appliance", "check", "--here", _CONFIG).returncode == 0


def test_reload_is_obeyed_or_refused_with_its_reason(serving: SystemdMachine):
    """`systemctl reload` fails where the file is wrong, says why in the journal, and nothing ends."""
    before = _main(serving), serving.show(_UNIT, "NRestarts")
    serving.run("systemctl", "reload", _UNIT)
    serving.run("sh", "-c", f"echo 'bad: 1' >> {_CONFIG}")
    assert serving.run("systemctl", "reload", _UNIT, check=False).returncode == 1
    wait_until(
        lambda: (
            f"{_CONFIG}:8:1: bad: unknown key"
            in serving.says("journalctl", "--unit", _UNIT, "--output", "cat")
        ),
        what="the journal says why",
    )
    serving.run("sh", "-c", f"sed -i '/^bad/d' {_CONFIG}")
    serving.run("systemctl", "reload", _UNIT)
    assert (_main(serving), serving.show(_UNIT, "NRestarts")) == before


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_it_comes_back(serving: SystemdMachine, number: signal.Signals):
    """A supervisord that is killed, or hangs, is started again, and has the virtual IP again."""
    before = _main(serving)
    serving.run("kill", f"-{number.name.removeprefix('SIG')}", str(before))
    wait_until(lambda: _main(serving) not in (0, before), what="another one runs", timeout=_LONG)
    wait_until(
        lambda: serving.show(_UNIT, "ActiveState") == "active" and _has_vip(serving),
        what="it serves again",
        timeout=_LONG,
    )


def test_a_stop_leaves_nothing(serving: SystemdMachine):
    """The address is gone, and so is every process; systemd had to kill none."""
    serving.run("systemctl", "stop", _UNIT)
    assert (serving.show(_UNIT, "ActiveState"), serving.show(_UNIT, "Result")) == ("inactive", "success")
    assert not _has_vip(serving)
    assert "appliance.programs" not in serving.says("ps", "-eo", "args")
    serving.run("systemctl", "reset-failed", _UNIT, check=False)
