"""The network interfaces of a virtual machine, after udev has named them.

This early in a start drivers are still being loaded, and udev renames an interface (eth0 to ens192) some time
after the kernel created it: a configuration with the first name would refer to nothing.
"""

import contextlib
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_ETHERNET: Final = 1  # ARPHRD_ETHER of linux/if_arp.h
_NETDEV_NAME: Final = re.compile(r"^Name=(\S+)", re.MULTILINE)
_TIMEOUT: Final = 15.0
"""Seconds to wait for the interface: a machine without one must start, too."""

_PAUSE: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """An Ethernet device: its name in the kernel, its MAC address, and its index."""

    name: str
    mac: str
    index: int


def devices(root: Path, adapters: Sequence[str] = ()) -> tuple[Device, ...]:
    """Return the non-virtual Ethernet devices.

    `adapters` are MAC addresses in the order of the machine's adapters, as its hypervisor has them; devices
    without one follow by their index, as all do where the hypervisor reports none.
    """
    found: list[Device] = []
    with contextlib.suppress(OSError):
        for each in (root / "sys/class/net").iterdir():
            # Bridges, VLANs and veth have no link `device` in sysfs: they have no hardware.
            if (each / "device").exists() and _number(each / "type") == _ETHERNET:
                mac = (each / "address").read_text().strip()
                found.append(Device(name=each.name, mac=mac, index=_number(each / "ifindex")))
    order = {mac: place for place, mac in enumerate(adapters)}
    return tuple(sorted(found, key=lambda each: (order.get(each.mac, len(order)), each.index)))


def interfaces(root: Path, first: Sequence[Device]) -> tuple[str, ...]:
    """Return the names of all interfaces, these devices before the others.

    They include those that networkd is configured to create (systemd.netdev(5)), which do not exist yet at a
    start.
    """
    names: list[str] = [each.name for each in first]
    with contextlib.suppress(OSError):
        names += sorted(each.name for each in (root / "sys/class/net").iterdir() if each.name != "lo")
    for file in sorted((root / "etc/systemd/network").glob("*.netdev")):
        with contextlib.suppress(OSError):
            names += _NETDEV_NAME.findall(file.read_text(encoding="utf-8", errors="replace"))
    return tuple(dict.fromkeys(names))


def wait_for_devices(
    root: Path, *, number: int = 1, adapters: Sequence[str] = (), timeout: float = _TIMEOUT
) -> tuple[Device, ...]:
    """Return the devices once udev has finished with that many, and with disks (an ISO may have properties).

    Without udev, does not wait. There may be fewer after `timeout` seconds.
    """
    deadline = time.monotonic() + timeout
    while (root / "run/udev").is_dir() and time.monotonic() < deadline:
        _settle(deadline - time.monotonic())
        found = devices(root, adapters)
        # udev writes this file after it has applied its rules to the device, including the new name.
        if len(found) >= number and all((root / f"run/udev/data/n{each.index}").exists() for each in found):
            break
        time.sleep(_PAUSE)
    return devices(root, adapters)


def _settle(timeout: float) -> None:
    udevadm = shutil.which("udevadm")
    if udevadm is not None:
        with contextlib.suppress(subprocess.TimeoutExpired, OSError):
            words = [udevadm, "settle"]
            subprocess.run(words, capture_output=True, timeout=timeout, check=False)  # noqa: S603  # no shell


def _number(path: Path) -> int:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return 0
