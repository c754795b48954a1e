"""Why an address cannot be bound, worded for the operator."""

import errno
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from appliance.model.snapshot.frontends import Bind

_TABLES: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LISTEN: Final = "0A"  # include/net/tcp_states.h

_PRIVILEGED: Final = (
    "permission denied: ports below {first} need CAP_NET_BIND_SERVICE or net.ipv4.ip_unprivileged_port_start"
)
_FIRST_FREE_PORT: Final = Path("/proc/sys/net/ipv4/ip_unprivileged_port_start")


class PortOwners:
    """Who listens on which port. All is read at the first question: a moment has one of these."""

    def owner(self, port: int) -> str | None:
        """Return "name (pid n)" of a process that listens on the port, None if that is not visible."""
        holders = (self._holders.get(each) for each in self._sockets.get(port, ()))
        process = next(filter(None, holders), None)
        return f"{_name(process)} (pid {process.name})" if process else None

    @cached_property
    def _sockets(self) -> Mapping[int, Sequence[str]]:
        """The listening sockets by port, as links to descriptors name them."""
        found: dict[int, list[str]] = {}
        for table in _TABLES:
            with suppress(OSError):
                for line in table.read_text().splitlines()[1:]:
                    fields = line.split()
                    if fields[3] == _LISTEN:
                        port = int(fields[1].rpartition(":")[2], 16)
                        found.setdefault(port, []).append(f"socket:[{fields[9]}]")
        return found

    @cached_property
    def _holders(self) -> Mapping[str, Path]:
        """The first process that has each socket of the ports."""
        wanted = {each for sockets in self._sockets.values() for each in sockets}
        found: dict[str, Path] = {}
        for process in Path("/proc").glob("[0-9]*") if wanted else ():
            for each in wanted.intersection(_descriptors(process)):
                found.setdefault(each, process)
        return found


def _descriptors(process: Path) -> Iterator[str]:
    with suppress(OSError):  # another user's, or gone by now
        for entry in (process / "fd").iterdir():
            with suppress(OSError):
                yield str(entry.readlink())


def _name(process: Path) -> str:
    with suppress(OSError):
        return (process / "comm").read_text().strip()
    return "a process"


@dataclass(frozen=True, slots=True, kw_only=True)
class BindProblem:
    """A bind that failed, and why."""

    bind: Bind
    reason: str

    def __str__(self) -> str:
        return f"{self.bind}: {self.reason}"


class BindRefused(Exception):  # noqa: N818  # an outcome, which becomes a BindProblem
    """A bind failed; the message has the reason."""


def reason(port: int, error: OSError, owners: PortOwners) -> str:
    """Return why bind(2) failed."""
    match error.errno:
        case errno.EACCES | errno.EPERM:
            return _PRIVILEGED.format(first=_first_unprivileged_port())
        case errno.EADDRINUSE:
            owner = owners.owner(port)
            return f"address in use by {owner}" if owner else "address in use"
        case errno.EADDRNOTAVAIL:
            return "no interface has this address; bind [::] or set net.ipv4.ip_nonlocal_bind"
        case _:
            return error.strerror or str(error)


def may_be_given(reason: str) -> bool:
    """Return whether the reason is a privilege that this process lacks, and another of ours may have."""
    return reason.startswith(_PRIVILEGED.partition(":")[0])


def _first_unprivileged_port() -> int:
    try:
        return int(_FIRST_FREE_PORT.read_text())
    except (OSError, ValueError):
        return 1024
