"""A TCP server that says its name, and then returns each byte it gets: `python echoer.py NAME PORT`.

It listens on every address of both families, and holds thousands of connections.
"""

import asyncio
import resource
import socket
import sys

_BACKLOG = 4096


class Echo(asyncio.Protocol):
    """One connection."""

    def __init__(self, name: str) -> None:
        self._name = name.encode() + b"\n"
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say the name."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(self._name)

    def data_received(self, data: bytes) -> None:
        """Return what has come."""
        assert self._transport is not None
        self._transport.write(data)


async def _serve(name: str, port: int) -> None:
    listener = socket.create_server(
        ("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=_BACKLOG
    )
    server = await asyncio.get_running_loop().create_server(
        lambda: Echo(name), sock=listener, backlog=_BACKLOG
    )
    await server.serve_forever()


if __name__ == "__main__":
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    asyncio.run(_serve(sys.argv[1], int(sys.argv[2])))
