"""The machine and its limits: versions, processes with their limits, network, the kernel's settings."""

import importlib.metadata
import os
import platform
import socket
import sys
from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

from pyroute2 import IPRoute

import appliance
from appliance.console.support.parts import Part, as_json
from appliance.model.paths import Paths
from appliance.net.listening.bind_refusals import PortOwners
from appliance.net.nftables.nftables import Nftables
from appliance.net.process.own_processes import own_processes
from appliance.wire.nftables.nftables_commands import LIST_RULESET

_MOST: Final = 2000
"""Most routes, neighbours and the like; a router of the internet has a million."""

_LONGEST: Final = 1 << 20
_NETWORK: Final = ("links", "addr", "routes", "rules", "neighbours")
_PROC: Final = (
    *("loadavg", "meminfo", "uptime", "cpuinfo", "modules", "net/sockstat", "net/sockstat6"),
    *("net/netstat", "net/snmp", "net/snmp6", "net/softnet_stat", "net/dev", "net/tcp", "net/tcp6"),
)
_SETTINGS: Final = (
    *("net/ipv4/ip_nonlocal_bind", "net/ipv6/ip_nonlocal_bind", "net/ipv4/ip_unprivileged_port_start"),
    *("net/ipv4/ip_local_port_range", "net/ipv4/tcp_max_syn_backlog", "net/ipv4/tcp_tw_reuse"),
    *("net/ipv4/ip_forward", "net/ipv4/conf/all/arp_ignore", "net/ipv4/conf/all/arp_announce"),
    *("net/ipv4/conf/all/rp_filter", "net/core/somaxconn", "net/core/netdev_max_backlog"),
    *("net/netfilter/nf_conntrack_count", "net/netfilter/nf_conntrack_max"),
    *("fs/file-nr", "fs/file-max", "fs/nr_open", "kernel/pid_max"),
)
_OF_PROCESS: Final = ("cmdline", "limits", "status", "cgroup", "oom_score_adj")


def machine_parts(paths: Paths) -> Iterator[Part]:
    """Yield what this user may see of the machine."""
    yield Part(name="versions.json", made=_versions)
    yield Part(name="processes.txt", made=partial(_processes, paths))
    yield Part(name="listening.txt", made=_listening)
    yield Part(name="settings.txt", made=_settings)
    yield Part(name="nftables.json", made=_rules)
    for each in _NETWORK:
        yield Part(name=f"network/{each}.json", made=partial(_network, each))
    for name in _PROC:
        yield Part(name=f"proc/{name.replace('/', '-')}.txt", made=partial(_proc, name))
    for name in ("cpu.max", "memory.max", "memory.current", "pids.max"):
        yield Part(name=f"cgroup/{name}.txt", made=partial(_file, Path("/sys/fs/cgroup", name)))


def _versions() -> str:
    packages = {each.name: each.version for each in importlib.metadata.distributions()}
    return as_json(
        {
            "appliance": appliance.__version__,
            "python": sys.version,
            "kernel": platform.uname()._asdict(),
            "system": platform.freedesktop_os_release(),
            "user": os.geteuid(),
            "host": socket.gethostname(),
            "packages": dict(sorted(packages.items())),
        }
    )


def _processes(paths: Paths) -> str:
    """Return the content of /proc for each program; never its environment, which may hold secrets."""
    texts = []
    for each in sorted(own_processes(paths.runtime), key=lambda each: each.pid):
        texts.append(f"=== {each.pid} {each.module} {' '.join(each.arguments)}")
        place = Path(f"/proc/{each.pid}")
        texts += [f"--- {name}\n{_or_reason(place / name)}" for name in _OF_PROCESS]
        texts.append(f"--- open files\n{_open_files(place)}\n")
    return "\n".join(texts or ["no program of this runtime directory runs, or this user may not see them"])


def _open_files(place: Path) -> str:
    try:
        return str(sum(1 for _ in (place / "fd").iterdir()))
    except OSError as error:
        return error.strerror or str(error)


def _listening() -> str:
    ports = {
        int(line.split()[1].rpartition(":")[2], 16)
        for name in ("net/tcp", "net/tcp6")
        for line in _proc(name).splitlines()[1:]
        if line.split()[3] == "0A"
    }
    owners = PortOwners()
    return "".join(f"{port}: {owners.owner(port) or 'unknown'}\n" for port in islice(sorted(ports), _MOST))


def _settings() -> str:
    return "".join(f"{name}: {_or_reason(Path('/proc/sys', name)).strip()}\n" for name in _SETTINGS)


def _rules() -> str:
    nftables = Nftables()
    try:
        return as_json([{each.kind: each.fields} for each in nftables.run(LIST_RULESET)])
    finally:
        nftables.close()


def _network(what: str) -> str:
    with IPRoute() as netlink:
        found = getattr(netlink, f"get_{what}")()
        return as_json([_attributes(each) for each in islice(found, _MOST)])


def _attributes(message: object) -> object:
    """Return a netlink message as plain values; attributes are pairs, and may hold nested messages."""
    match message:
        case dict():
            return {
                str(key): _attributes(each) for key, each in message.items() if key not in ("header", "value")
            }
        case list() | tuple():
            return [_attributes(each) for each in message]
        case str() | int() | float() | None:
            return message
    return str(message)


def _proc(name: str) -> str:
    return _file(Path("/proc", name))


def _file(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(_LONGEST).replace(b"\0", b" ").decode(errors="replace")


def _or_reason(path: Path) -> str:
    try:
        return _file(path)
    except OSError as error:
        return f"({error.strerror or error})"
