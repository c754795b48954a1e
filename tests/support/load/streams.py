"""Connections that never pause: both ends write a known stream, and check each byte of the other's.

A program of its own, run by `Streams`. Its server is what the proxy is to connect to. A stream is a block of
random bytes again and again, so that a byte lost, doubled or moved is seen where it is.
"""

import argparse
import asyncio
import random
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Self

from support.processes.remote import Remote
from support.processes.steering import obey, say
from support.processes.waiting import wait_until

_BLOCK: Final = random.Random(7).randbytes(60013)  # noqa: S311  # no secret
_TWICE: Final = _BLOCK * 2
_CHUNK: Final = 16000


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamReport:
    """Connections that are open, why others have ended, and the bytes that arrived right at either end."""

    open: int
    ended: dict[str, int]
    to_server: int
    to_client: int


class Streams:
    """The running program. Use it as a context manager."""

    def __init__(self) -> None:
        self._remote = Remote("support.load.streams")
        self.port = int(str(self._remote.started["port"]))
        """Where its server listens."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._remote.close()

    def connect(self, port: int, number: int) -> None:
        """Open connections to a port of this machine, and wait until data comes at both ends of all."""
        self._remote.ask("connect", port=port, number=number)
        wait_until(lambda: self._remote.ask("flowing")["flowing"] == number, what="all streams flow")

    def report(self) -> StreamReport:
        """Return what happened so far."""
        told = self._remote.ask("report")
        return StreamReport(**told)  # type: ignore[arg-type]  # its fields are those of the program below

    def wait_for_more(self, size: int) -> None:
        """Wait until so many bytes more have arrived at each end, over all connections."""
        before = self.report()
        wait_until(
            lambda: (
                (now := self.report()).to_client >= before.to_client + size
                and now.to_server >= before.to_server + size
            ),
            what=f"{size} bytes more",
        )


class _Program:
    def __init__(self) -> None:
        self.open = 0
        self.ended: Counter[str] = Counter()
        self.received = {"server": 0, "client": 0}
        self._flowing: dict[str, set[asyncio.StreamReader]] = {"server": set(), "client": set()}
        self._tasks = set[asyncio.Task[None]]()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._both(reader, writer, "server")

    def connect(self, values: dict[str, object]) -> dict[str, object]:
        for _ in range(int(str(values["number"]))):
            task = asyncio.get_running_loop().create_task(self._client(int(str(values["port"]))))
            self._tasks.add(task)
        return {}

    def flowing(self, _: dict[str, object]) -> dict[str, object]:
        return {"flowing": min(map(len, self._flowing.values()))}

    def report(self, _: dict[str, object]) -> dict[str, object]:
        return {
            "open": self.open,
            "ended": dict(self.ended),
            "to_server": self.received["server"],
            "to_client": self.received["client"],
        }

    async def _client(self, port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        self.open += 1
        await self._both(reader, writer, "client")
        self.open -= 1

    async def _both(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, end: str) -> None:
        tasks = [asyncio.ensure_future(each) for each in (self._write(writer), self._check(reader, end))]
        done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for each in pending:
            each.cancel()
        for each in done:
            if reader in self._flowing[end]:  # a health check's connection says nothing
                self.ended[f"{end}: {each.exception() or 'end of the stream'}"] += 1
        writer.close()

    async def _write(self, writer: asyncio.StreamWriter) -> None:
        at = 0
        while True:
            writer.write(_TWICE[at : at + _CHUNK])
            at = (at + _CHUNK) % len(_BLOCK)
            await writer.drain()

    async def _check(self, reader: asyncio.StreamReader, end: str) -> None:
        at = 0
        flowing = self._flowing[end]
        while chunk := await reader.read(len(_BLOCK)):
            if chunk != _TWICE[at : at + len(chunk)]:
                raise ValueError("wrong bytes")
            at = (at + len(chunk)) % len(_BLOCK)
            self.received[end] += len(chunk)
            flowing.add(reader)


async def _main() -> None:
    program = _Program()
    server = await asyncio.start_server(program.serve, "127.0.0.1", 0)
    say({"port": server.sockets[0].getsockname()[1]})
    await obey({"connect": program.connect, "flowing": program.flowing, "report": program.report})


if __name__ == "__main__":
    argparse.ArgumentParser().parse_args()
    with suppress(KeyboardInterrupt):
        asyncio.run(_main())
    sys.exit(0)
