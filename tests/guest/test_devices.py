"""The machine's interface is found once it has its name for good."""

from pathlib import Path

import pytest
from support.machines.guest import guest

from appliance.guest.devices import Device, devices, interfaces, wait_for_devices

pytestmark = pytest.mark.sockets

DEVICE = Device(name="ens192", mac="00:50:56:00:00:02", index=2)


def test_devices_are_real_ones(tmp_path: Path):
    """Neither loopback nor bridge nor another kind; in the kernel's order, or in that of the hypervisor."""
    machine = guest(tmp_path)
    machine.device("br0", index=1, virtual=True)
    machine.device("can0", index=1, kind=280)
    machine.device("ens161", index=3)
    other = Device(name="ens161", mac="00:50:56:00:00:03", index=3)
    assert devices(machine.root) == (DEVICE, other)
    assert devices(machine.root, (other.mac, "00:50:56:00:00:09")) == (other, DEVICE)


def test_names_are_those_that_are_there_or_will_be(tmp_path: Path):
    """The first device first, then the others, and what networkd has been told to make."""
    machine = guest(tmp_path)
    machine.device("ens161", index=3)
    folder = machine.root / "etc/systemd/network"
    folder.mkdir(parents=True)
    (folder / "20-vlan.netdev").write_text("[NetDev]\nName=vlan7\nKind=vlan\n")
    (folder / "30-odd.netdev").mkdir()
    assert interfaces(machine.root, devices(machine.root)[:1]) == ("ens192", "ens161", "vlan7")
    assert interfaces(tmp_path, ()) == ()


def test_without_any_there_is_none(tmp_path: Path):
    """A machine without an interface, or a folder that is no machine, is not waited for without udev."""
    assert devices(tmp_path) == wait_for_devices(tmp_path) == ()


@pytest.mark.programs
def test_it_waits_until_udev_is_done_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The driver may be loaded late, and the name changes after that."""
    machine = guest(tmp_path)
    data, ens192 = machine.root / "run/udev/data", machine.root / "sys/class/net/ens192"
    data.mkdir(parents=True)
    ens192.rename(ens192.with_name("eth0"))
    late = f"mv {ens192.with_name('eth0')} {ens192}; touch {data}/n2"
    seen = tmp_path / "seen"
    machine.program("udevadm", f'[ "$1" = settle ] && if [ -e {seen} ]; then {late}; fi; touch {seen}')
    monkeypatch.setenv("PATH", str(machine.programs) + ":/usr/bin:/bin")
    assert wait_for_devices(machine.root, timeout=60) == (DEVICE,)


def test_it_does_not_wait_for_ever(tmp_path: Path):
    """A machine may have no interface, or one that udev knows nothing of."""
    machine = guest(tmp_path)
    (machine.root / "run/udev").mkdir(parents=True)
    assert wait_for_devices(machine.root, number=2, timeout=0.05) == (DEVICE,)
