"""Settings of a virtual machine as the files that systemd, sshd and the resolver read.

Everything is below one root. A file that already has the wanted content is left alone, others are replaced
whole. The file of a setting that is no longer given is removed, except for the host name and the keys: an
emptied property must not lock anyone out.

Networks, clock and log are in /run, which is empty after a restart: the next start makes them again.
"""

import contextlib
import socket
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from appliance.guest.devices import Device
from appliance.model.guest.machine_settings import GuestMachine, SyslogTarget
from appliance.model.guest.networks import GuestNetwork, Role
from appliance.net.files.atomic_write import remove_scratch_files, write_atomically

NETWORK: Final = Path("run/systemd/network/10-appliance.network")
UNUSED: Final = Path("run/systemd/network/80-appliance-unused.network")
CLOCK: Final = Path("run/systemd/timesyncd.conf.d/10-appliance.conf")
LOG: Final = Path("run/rsyslog-appliance.conf")
LISTEN: Final = Path("etc/ssh/sshd_config.d/50-appliance-management.conf")
AUTHORITIES: Final = Path("etc/ssl/appliance-ca")
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


def configure(root: Path, wanted: GuestMachine, devices: Mapping[Role, Device]) -> Iterator[OSError]:
    """Write all files, those of the networks' `devices` too; yields errors, and continues."""
    steps: tuple[Callable[[], None], ...] = (
        *(
            partial(_write, root / network_file(role), _network(wanted.network(role), devices.get(role)))
            for role in Role
        ),
        lambda: _write(root / UNUSED, _unused(devices)),
        lambda: _write(root / CLOCK, _clock(wanted)),
        lambda: _write(root / LOG, _log(wanted.syslog)),
        lambda: _write(root / LISTEN, _listen(wanted)),
        lambda: _write_authorities(root, wanted.authorities),
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


def network_file(role: Role) -> Path:
    """Return the file of a network, for systemd-networkd."""
    return NETWORK if role is Role.CLIENTS else NETWORK.with_name(f"10-appliance-{role}.network")


def _network(wanted: GuestNetwork | None, device: Device | None) -> str:
    if wanted is None:
        return ""
    # Kind=!*: no virtual interface. A VLAN or bridge has the MAC address of its parent.
    match = f"MACAddress={device.mac}\nType=ether" if device else "Type=ether"
    lines = [_MADE, "[Match]", match, "Kind=!*", "", "[Network]"]
    lines += [f"Address={each}" for each in wanted.addresses]
    lines += [f"Gateway={each}" for each in wanted.gateways]
    lines += [f"DNS={each}" for each in wanted.resolvers]
    lines += [] if wanted.addresses else ["DHCP=yes"]
    further = wanted.role is not Role.CLIENTS
    # With a configured gateway the machine needs none from router advertisements (RFC 4861 s.6.3.4), and no
    # address other than the given one. The default route leads out of one network only.
    if any(":" in each for each in wanted.gateways) or (further and wanted.addresses):
        lines.append("IPv6AcceptRA=no")
    # A restart of networkd must not remove virtual IPs, which it considers foreign.
    lines.append("KeepConfiguration=static")
    if further and not wanted.addresses:
        lines += ["", "[DHCPv4]", "UseGateway=no", "", "[IPv6AcceptRA]", "UseGateway=no"]
    for route in wanted.routes:
        lines += ["", "[Route]", f"Destination={route.to}", f"Gateway={route.via}"]
    return "\n".join([*lines, ""])


def _unused(devices: Mapping[Role, Device]) -> str:
    """Return what keeps adapters without a network silent: DHCP would give them a second default route.

    It comes after files of the operator, whose names begin with a lower number.
    """
    if Role.CLIENTS not in devices:
        return ""
    return f"{_MADE}\n[Match]\nType=ether\nKind=!*\n\n[Network]\nLinkLocalAddressing=no\nIPv6AcceptRA=no\n"


def _log(target: SyslogTarget | None) -> str:
    if target is None:
        return ""
    # Kept in memory while the server is away; RFC 5424, as each server of today reads it.
    action = (
        f'*.* action(type="omfwd" target="{target.host}" port="{target.port}" protocol="{target.protocol}"\n'
        '  template="RSYSLOG_SyslogProtocol23Format" queue.type="LinkedList" queue.size="10000"\n'
        '  action.resumeRetryCount="-1")\n'
    )
    return f'{_MADE}global(workDirectory="/var/spool/rsyslog")\nmodule(load="imuxsock")\n{action}'


def _listen(wanted: GuestMachine) -> str:
    """Return the addresses of sshd, if the machine has a network for its management."""
    addresses = [each.partition("/")[0] for each in wanted.of(Role.MANAGEMENT)]
    lines = [f"ListenAddress {each}\n" for each in addresses]
    return _MADE + "".join(lines) if lines else ""


def _write_authorities(root: Path, certificates: Sequence[str]) -> None:
    """Write what appliance-trust.service has all programs of the machine trust."""
    files = {root / AUTHORITIES / f"{number:02}.crt": text for number, text in enumerate(certificates)}
    there = set((root / AUTHORITIES).glob("*.crt"))
    if not files and not there:
        return
    for path, text in files.items():
        _write(path, text)
    for path in there - files.keys():
        path.unlink()


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
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            path.unlink()
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
