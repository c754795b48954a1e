"""The demo's ports: those of config/demo.yaml, moved together by an offset; other programs may have them."""

import errno
import re
import socket
from collections.abc import Iterator
from typing import Final

from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.files.packaged import packaged

DEMO_PORTS: Final = re.compile(r"(?<=[:\s])(?:9445|9444|9454|8080|8404|8443|16443|11936|18080|18443)\b")
_IPV6_BINDS: Final = re.compile(r', "\[::1\]:\d+"')


class DemoError(Exception):
    """The demo cannot run here; the message has the remedy."""


def configuration(*, offset: int, ipv6: bool) -> str:
    """Return config/demo.yaml with its ports moved, and its comments kept."""
    text = packaged("demo.yaml").read_text()
    moved = DEMO_PORTS.sub(lambda match: str(int(match[0]) + offset), text)
    return moved if ipv6 else _IPV6_BINDS.sub("", moved)


def refuse_taken(snapshot: Snapshot, offset: int) -> None:
    """Raise DemoError if other programs have ports of the demo."""
    taken = sorted({port for host, port in _addresses(snapshot) if _taken(host, port)})
    if taken:
        raise DemoError(
            f"other programs have these ports already: {', '.join(map(str, taken))}."
            f" Choose others, for example with --port-offset {offset + 1000},"
            f" which adds {offset + 1000} to every port of the demo."
        )


def _addresses(snapshot: Snapshot) -> Iterator[tuple[str, int]]:
    for group in snapshot.groups:
        yield from ((bind.host, bind.port) for frontend in group.frontends for bind in frontend.binds)
    yield from ((bind.host, bind.port) for bind in (snapshot.stats.binds if snapshot.stats else ()))
    for pool in snapshot.pools:
        for server in pool.servers:
            yield server.host, server.port
            if server.check and server.check.port:
                yield server.host, server.check.port


def _taken(host: str, port: int) -> bool:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return True
            raise DemoError(f"cannot listen on {host} port {port}: {error.strerror}") from error
    return False
