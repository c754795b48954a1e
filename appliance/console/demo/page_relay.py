"""Leads connections of a listening socket to a port of this network: the pages of the pair for a browser.

The socket is inherited, and belongs to the network of the demo's terminal.
"""

import asyncio
import contextlib
import socket
import sys
from typing import Final

_CHUNK: Final = 1 << 16
_ANY: Final = 0


def listener(port: int) -> socket.socket:
    """Return a listening socket on loopback, on this port or, if another program has it, on any."""
    for each in (port, _ANY):
        with contextlib.suppress(OSError):
            return socket.create_server(("127.0.0.1", each))
    raise OSError("no port on loopback can be had")


async def _relay(listening: socket.socket, port: int) -> None:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError), contextlib.closing(writer):
            there, back = await asyncio.open_connection("127.0.0.1", port)
            with contextlib.closing(back):
                await asyncio.gather(_copy(reader, back), _copy(there, writer))

    server = await asyncio.start_server(connected, sock=listening)
    await server.serve_forever()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_CHUNK):
        writer.write(data)
        await writer.drain()
    writer.write_eof()


if __name__ == "__main__":
    asyncio.run(_relay(socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2])))
