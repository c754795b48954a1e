"""Free ports below the ephemeral range, so that no outgoing connection takes one before it is bound."""

import random
import socket
from contextlib import suppress
from typing import Final

_FIRST: Final = 10000
# The machine-config port gives secrets away: a configuration without `allow` may not have it.
_taken: set[int] = {22623}


def free_port() -> int:
    """Return a TCP port that nobody listens on, on any address, and that was not returned before."""
    while True:
        port = random.randrange(_FIRST, 32000)  # noqa: S311  # not a secret
        if port not in _taken and _bindable(port):
            _taken.add(port)
            return port


def free_ports(count: int) -> list[int]:
    """Return several free ports."""
    return [free_port() for _ in range(count)]


def accepts(port: int, host: str = "127.0.0.1") -> bool:
    """Return whether somebody accepts connections there."""
    with suppress(OSError), socket.create_connection((host, port), timeout=2.0):
        return True
    return False


def _bindable(port: int) -> bool:
    with suppress(OSError), socket.socket(socket.AF_INET6) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        probe.bind(("::", port))
        return True
    return False
