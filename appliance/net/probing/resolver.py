"""Servers' names resolved to addresses: periodically, and soon after a server's check fails.

The last good address is kept: a name server that is down for a while must not take servers down. A name with
several addresses keeps the same one as long as it is among them, so a name server that rotates its answers
(round robin DNS) does not move a server. It reports all of its addresses, for servers that share a name.

getaddrinfo(3) blocks its thread, for seconds if a name server does not answer. gevent's resolver calls it in
a thread pool, so only the calling greenlet waits, and checks continue.
"""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final

import gevent
from gevent import socket
from gevent.event import Event

from appliance.wire.literal import is_literal

REFRESH: Final = 30.0
"""Seconds between two queries for a name."""

RETRY: Final = 5.0
"""Seconds to the next query if there was no answer, or if a check of the name's server fails."""

_NOTHING: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({})

Lookup = Callable[[str], list[str]]
"""Returns the addresses of a name, best first; raises OSError. May block its greenlet."""


def lookup(name: str) -> list[str]:
    """Ask the system's resolver (getaddrinfo: hosts file, then name servers, sorted by RFC 6724)."""
    found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


class Resolver:
    """The names to resolve, each with a greenlet that queries its address periodically.

    `on_change` is called with a name and its addresses whenever they change, the one to use first. All are of
    that one's version of IP: a machine that has both is no two servers.
    """

    def __init__(
        self,
        on_change: Callable[[str, tuple[str, ...]], None],
        *,
        ask: Lookup = lookup,
        refresh: float = REFRESH,
        retry: float = RETRY,
    ) -> None:
        self._on_change = on_change
        self._ask = ask
        self._refresh = refresh
        self._retry = retry
        self._names: dict[str, _Name] = {}
        self._loops: dict[str, gevent.Greenlet] = {}

    def want(self, hosts: Iterable[str], *, known: Mapping[str, tuple[str, ...]] = _NOTHING) -> None:
        """Resolve exactly the names among these hosts from now on; literal addresses need no query.

        `known` are the addresses of new names until the first answer. The first is used until one lacks it.
        """
        wanted = {host for host in hosts if not is_literal(host)}
        for name in self._names.keys() - wanted:
            del self._names[name]
            self._loops.pop(name).kill(block=False)
        for name in sorted(wanted - self._names.keys()):
            self._names[name] = _Name(known.get(name, ()))
            self._loops[name] = gevent.spawn(self._follow, name, self._names[name])

    def address(self, host: str, *, timeout: float) -> str:
        """Return the literal address of a host, "" if it has none.

        Waits for the first answer at most `timeout` seconds, and only if no address is known yet.
        """
        name = self._names.get(host)
        if name is None:
            return host
        name.asked.wait(timeout)
        return name.address

    def addresses(self) -> dict[str, tuple[str, ...]]:
        """Return the names that have addresses, with them, the one to use first."""
        return {host: name.addresses for host, name in self._names.items() if name.addresses}

    def problem(self, host: str) -> str:
        """Return why the last query for a name had no answer, "" if it had one."""
        name = self._names.get(host)
        return name.problem if name else ""

    def ask_soon(self, host: str) -> None:
        """Query a name again soon, because its server fails its check: it may have moved."""
        name = self._names.get(host)
        if name:
            name.ask_now.set()

    def unresolved(self) -> dict[str, str]:
        """Return the names whose last query had no answer, with the reasons."""
        return {host: name.problem for host, name in sorted(self._names.items()) if name.problem}

    def close(self) -> None:
        """Stop all queries."""
        self.want(())

    def _follow(self, host: str, name: "_Name") -> None:
        while True:
            self._resolve(host, name)
            name.asked.set()
            gevent.sleep(self._retry)
            if not name.problem:
                name.ask_now.wait(max(self._refresh - self._retry, 0.0))
            name.ask_now.clear()

    def _resolve(self, host: str, name: "_Name") -> None:
        try:
            found = self._ask(host)
        except (OSError, UnicodeError) as error:  # a label of more than 63 characters is a UnicodeError
            name.problem = str(getattr(error, "strerror", None) or error)
            return
        name.problem = "" if found else "no address"
        if not found:
            return
        first = name.address if name.address in found else found[0]
        alike = [each for each in found if (":" in each) is (":" in first)]
        before, name.addresses = name.addresses, tuple(dict.fromkeys((first, *alike)))
        if before[:1] != (first,) or set(before) != set(name.addresses):
            self._on_change(host, name.addresses)


class _Name:
    __slots__ = ("addresses", "ask_now", "asked", "problem")

    def __init__(self, addresses: tuple[str, ...]) -> None:
        self.addresses = addresses
        self.problem = ""
        self.asked = Event()
        if addresses:
            self.asked.set()
        self.ask_now = Event()

    @property
    def address(self) -> str:
        """The address to use, "" if it has none."""
        return self.addresses[0] if self.addresses else ""
