"""A server whose behaviour a test scripts: the first line that a client sends says what it gets.

==================  =====================================================================================
``who``             the server's name, then the end
``line <text>``     ``<name> <text>``, for as many such lines as the client sends
``give <n>``        n bytes of `support.values.body`, then the end
``take``            everything up to the client's half-close; the answer is its length and SHA-256
``part``            ``part`` and a half-close; then counts what the client still sends until its end
``late <seconds>``  the name after a pause, then the end
``reset``           a reset
``stall``           nothing is ever read again
``GET /readyz ..``  200 or 500, as the test says; any other path: the name
``GET .. Upgrade``  101, then an echo
==================  =====================================================================================
"""

import argparse
import asyncio
import hashlib
import socket
import ssl
import struct
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Self

from support.network.ports import free_port
from support.processes.remote import Remote
from support.processes.steering import obey, say
from support.values import body


class Backend:
    """A scriptable server in a process of its own, on `host`, else on every address of both families."""

    def __init__(
        self,
        name: str,
        *,
        port: int | None = None,
        host: str | None = None,
        tls_port: int | None = None,
        certificate: tuple[Path, Path] | None = None,
    ) -> None:
        self.name = name
        self.port = port or free_port()
        arguments = [f"--name={name}", f"--port={self.port}"]
        if host is not None:
            arguments.append(f"--host={host}")
        if certificate is not None:
            self.tls_port = tls_port or free_port()
            chain, key = certificate
            arguments += [f"--tls-port={self.tls_port}", f"--chain={chain}", f"--key={key}"]
        self._remote = Remote("support.peers.backend", *arguments)
        self.pid = self._remote.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._remote.close()

    def stop(self) -> None:
        """End the server; its connections are reset or closed by the kernel."""
        self._remote.close()

    def ready(self, status: int) -> None:
        """Set what /readyz answers."""
        self._remote.ask("ready", status=status)

    def counts(self) -> dict[str, int]:
        """Return how many connections asked for what; `open` are there now, `parted` is bytes after part."""
        counts = self._remote.ask("counts")["counts"]
        assert isinstance(counts, dict)
        return {str(key): int(str(value)) for key, value in counts.items()}


class _Server:
    def __init__(self, name: str) -> None:
        self.name = name.encode()
        self.status = 200
        self.counts: Counter[str] = Counter()

    def ready(self, values: dict[str, object]) -> dict[str, object]:
        self.status = int(str(values["status"]))
        return {}

    def count(self, _: dict[str, object]) -> dict[str, object]:
        return {"counts": dict(self.counts)}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.counts["open"] += 1
        try:
            await self._converse(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            self.counts["broken"] += 1
        finally:
            self.counts["open"] -= 1
            writer.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        words = (await reader.readline()).decode(errors="replace").split()
        word = words[0] if words else "nothing"
        self.counts[word] += 1
        match words:
            case ["who"]:
                writer.write(self.name + b"\n")
            case ["line", *text]:
                await self._lines(" ".join(text), reader, writer)
            case ["give", size]:
                await _give(int(size), writer)
            case ["take"]:
                await _take(reader, writer)
            case ["part"]:
                await self._part(reader, writer)
            case ["late", seconds]:
                await asyncio.sleep(float(seconds))
                writer.write(self.name + b"\n")
            case ["reset"]:
                _reset(writer)
            case ["stall"]:
                writer.transport.pause_reading()  # type: ignore[attr-defined]  # a stream's transport reads
                await asyncio.Event().wait()
            case ["GET", path, *_]:
                await self._http(path, reader, writer)
        await writer.drain()

    async def _lines(self, text: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(self.name + b" " + text.encode() + b"\n")
        while line := await reader.readline():
            writer.write(self.name + b" " + line.partition(b" ")[2])
            await writer.drain()

    async def _part(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"part\n")
        writer.write_eof()
        while chunk := await reader.read(body.CHUNK):
            self.counts["parted"] += len(chunk)
        self.counts["parted-ends"] += 1

    async def _http(self, path: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = b""
        while (line := await reader.readline()).strip():
            head += line.lower()
        if b"upgrade:" in head:
            self.counts["upgraded"] += 1
            writer.write(
                b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
            )
            while chunk := await reader.read(body.CHUNK):
                writer.write(chunk)
                await writer.drain()
            return
        status = self.status if path.startswith("/readyz") else 200
        self.counts[path] += 1
        length = len(self.name)
        writer.write(b"HTTP/1.1 %d -\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % (status, length))
        writer.write(self.name)


async def _give(size: int, writer: asyncio.StreamWriter) -> None:
    for chunk in body.chunks(size):
        writer.write(chunk)
        await writer.drain()


async def _take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    length, digest = 0, hashlib.sha256()
    while chunk := await reader.read(body.CHUNK):
        length += len(chunk)
        digest.update(chunk)
    writer.write(f"{length} {digest.hexdigest()}\n".encode())


def _reset(writer: asyncio.StreamWriter) -> None:
    connection: socket.socket = writer.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def _main(arguments: argparse.Namespace) -> None:
    server = _Server(arguments.name)
    # One listener on :: serves both families.
    await asyncio.start_server(server.serve, sock=_listener(arguments.port, arguments.host), limit=body.CHUNK)
    if arguments.tls_port:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(arguments.chain, arguments.key)
        await asyncio.start_server(
            server.serve, sock=_listener(arguments.tls_port, arguments.host), ssl=context
        )
    say({"port": arguments.port})
    await obey({"ready": server.ready, "counts": server.count})


def _listener(port: int, host: str | None) -> socket.socket:
    if host is not None:
        return socket.create_server((host, port), backlog=4096)
    return socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=4096)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--host")
    parser.add_argument("--tls-port", type=int)
    parser.add_argument("--chain")
    parser.add_argument("--key")
    with suppress(KeyboardInterrupt):
        asyncio.run(_main(parser.parse_args()))
    sys.exit(0)
