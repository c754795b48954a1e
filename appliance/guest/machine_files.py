"""Settings of a virtual machine as the files that systemd, sshd and the resolver read.

Everything is below one root. A file that already has the wanted content is left alone, others are replaced
whole. The file of a setting that is no longer given is removed, except for the host name and the keys: an
emptied property must not lock anyone out.

Network and clock are in /run, which is empty after a restart: the properties of that start create them again.
"""

import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from appliance.guest.devices import Device
from appliance.model.guest.machine import GuestMachine
from appliance.net.files.atomic_write import remove_scratch_files, write_atomically

NETWORK: Final = Path("run/systemd/network/10-appliance.network")
CLOCK: Final = Path("run/systemd/timesyncd.conf.d/10-appliance.conf")
KEYS: Final = Path("etc/ssh/authorized_keys.d/admin")
HOST_NAME: Final = Path("etc/hostname")
HOSTS: Final = Path("etc/hosts")

_MODE: Final = 0o644
_LOCAL: Final = "127.0.1.1"  # Debian's, hosts(5)
_HOME_KEYS: Final = Path("home/admin/.ssh/authorized_keys")
_OTHER_KEYS: Final = (
    "# Add keys to ~/.ssh/authorized_keys of the user admin, not here: each start writes this again."
)
_MADE: Final = "# Made by `appliance guest apply` from the properties of this virtual machine.\n"


def configure(root: Path, wanted: GuestMachine, device: Device | None) -> Iterator[OSError]:
    """Write all files; yields errors of files that cannot be written, and continues with the others."""
    steps: tuple[Callable[[], None], ...] = (
        lambda: _write(root / NETWORK, _network(wanted, device)),
        lambda: _write(root / CLOCK, _clock(wanted)),
        lambda: _write_keys(root, wanted),
        lambda: _set_host_name(root, wanted.host_name),
    )
    for step in steps:
        try:
            step()
        except OSError as error:
            yield error


def login_keys(root: Path) -> int:
    """Return how many keys can log in as the user admin, including those that a person added."""
    return sum(len(_lines(root / each)) for each in (KEYS, _HOME_KEYS))


def _network(wanted: GuestMachine, device: Device | None) -> str:
    # Kind=!*: no virtual interface. A VLAN or bridge has the MAC address of its parent.
    match = f"MACAddress={device.mac}\nType=ether" if device else "Type=ether"
    lines = [_MADE, "[Match]", match, "Kind=!*", "", "[Network]"]
    lines += [f"Address={each}" for each in wanted.addresses]
    lines += [f"Gateway={each}" for each in wanted.gateways]
    lines += [f"DNS={each}" for each in wanted.resolvers]
    lines += [] if wanted.addresses else ["DHCP=yes"]
    # With a configured gateway the machine needs none from router advertisements (RFC 4861 s.6.3.4), and no
    # address other than the given one.
    if any(":" in each for each in wanted.gateways):
        lines.append("IPv6AcceptRA=no")
    # A restart of networkd must not remove virtual IPs, which it considers foreign.
    lines.append("KeepConfiguration=static")
    return "\n".join([*lines, ""])


def _clock(wanted: GuestMachine) -> str:
    servers = " ".join(wanted.time_servers)
    return f"{_MADE}\n[Time]\nNTP={servers}\n" if servers else ""


def _write_keys(root: Path, wanted: GuestMachine) -> None:
    if wanted.ssh_keys:
        # A truncated key must not replace the whole one.
        before = () if wanted.keys_complete else _lines(root / KEYS)
        keys = dict.fromkeys((*before, *wanted.ssh_keys))
        _write(root / KEYS, "".join(f"{each}\n" for each in (_MADE + _OTHER_KEYS, *keys)))


def _lines(path: Path) -> tuple[str, ...]:
    """Return the keys in a file, none if it cannot be read."""
    try:
        written = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ()
    return tuple(each.strip() for each in written if each.strip() and not each.startswith("#"))


def _set_host_name(root: Path, name: str | None) -> None:
    if name is None:
        return
    _write(root / HOST_NAME, f"{name}\n")
    _write(root / HOSTS, _hosts(root / HOSTS, name))
    if root == Path("/"):
        socket.sethostname(name)


def _hosts(path: Path, name: str) -> str:
    """Return the text of /etc/hosts with the machine's own name, otherwise unchanged."""
    try:
        lines = path.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except FileNotFoundError:
        lines = ["127.0.0.1 localhost", "::1 localhost"]
    kept = [each for each in lines if each.split()[:1] != [_LOCAL]]
    names = " ".join(dict.fromkeys((name, name.partition(".")[0])))
    return "\n".join([*kept, f"{_LOCAL} {names}", ""])


def _write(path: Path, text: str) -> None:
    """Write a file's text, readable for all; without text, remove the file."""
    data = text.encode(errors="surrogateescape")
    if not data:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    remove_scratch_files(path)
    if not _has(path, data):
        write_atomically(path, data, mode=_MODE)


def _has(path: Path, data: bytes) -> bool:
    try:
        return path.read_bytes() == data and stat.S_IMODE(path.stat().st_mode) == _MODE
    except FileNotFoundError:
        return False
