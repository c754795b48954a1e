"""Connections that never pause: both ends write a known stream, and check each byte of the other's.

A program of its own, run by `Streams`. Its server is what the proxy is to connect to. A stream is a block of
random bytes again and again, so that a byte lost, doubled or moved is seen where it is. Each end writes as
fast as the other one reads; or, for thousands of them on one machine, a piece in each so many seconds.
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
_REPEATED: Final = _BLOCK * 6  # longer by a block than what asyncio reads at once, 256 KiB
_CHUNK: Final = 16000
_PIECE: Final = 1000
_IN_A_ROW: Final = 4
_TICK: Final = 0.02  # seconds


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

    def connect(self, port: int, number: int, *, period: float = 0.0) -> None:
        """Open connections to a port of this machine, and wait until data comes at both ends of all.

        `period` is the seconds in which each end of a stream writes a piece from now on, 0.0 for no pause.
        """
        self._remote.ask("connect", port=port, number=number, period=period)
        self.wait_until_all_flow()

    def wait_until_all_flow(self) -> None:
        """Wait until data has come at both ends of every connection since this was called."""
        self._remote.ask("look-again")
        wait_until(self._all_flow, what="all streams flow", timeout=60.0)

    def _all_flow(self) -> bool:
        told = self._remote.ask("flowing")
        return told["flowing"] == told["opened"]

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
        self.opened = 0
        self.open = 0
        self.ended: Counter[str] = Counter()
        self.received = {"server": 0, "client": 0}
        self.flowing: dict[str, set[_End]] = {"server": set(), "client": set()}
        self.period = 0.0
        self._ends: dict[_End, None] = {}
        self._tasks = set[asyncio.Task[object]]()

    def end_of(self, kind: str) -> "_End":
        return _End(self, kind)

    def connect(self, values: dict[str, object]) -> dict[str, object]:
        self.period = float(str(values["period"]))
        loop, number = asyncio.get_running_loop(), int(str(values["number"]))
        self.opened += number
        for _ in range(number):
            opening = loop.create_connection(
                lambda: self.end_of("client"), "127.0.0.1", int(str(values["port"]))
            )
            self._tasks.add(loop.create_task(opening))
        return {}

    def look_again(self, _: dict[str, object]) -> dict[str, object]:
        for each in self.flowing.values():
            each.clear()
        return {}

    def flows(self, _: dict[str, object]) -> dict[str, object]:
        return {"flowing": min(map(len, self.flowing.values())), "opened": self.opened}

    def report(self, _: dict[str, object]) -> dict[str, object]:
        return {
            "open": self.open,
            "ended": dict(self.ended),
            "to_server": self.received["server"],
            "to_client": self.received["client"],
        }

    def begin(self, end: "_End") -> None:
        self._ends[end] = None
        self.open += end.kind == "client"

    def finish(self, end: "_End", why: str) -> None:
        self._ends.pop(end, None)
        self.open -= end.kind == "client"
        if end.known:  # a health check's connection says nothing
            self.ended[f"{end.kind}: {why}"] += 1

    async def write_pieces(self) -> None:
        """Have each end write a piece in each period, a few of them at a time."""
        turn = 0
        while True:
            await asyncio.sleep(_TICK)
            if not self.period:
                continue
            parts = max(1, round(self.period / _TICK))
            turn = (turn + 1) % parts
            for each in list(self._ends)[turn::parts]:
                each.write_piece()


class _End(asyncio.Protocol):
    """One end of a connection: what it writes, and what it is to read next."""

    def __init__(self, program: _Program, kind: str) -> None:
        self.kind = kind
        self.known = False  # a byte of the other end's stream has come
        self._program = program
        self._written, self._read, self._pieces = 0, 0, 0
        self._paused = False
        self._why = "end of the stream"

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._program.begin(self)
        self._write_on()

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        self._write_on()

    def data_received(self, data: bytes) -> None:
        if data != _REPEATED[self._read : self._read + len(data)]:
            self._why = "wrong bytes"
            self._transport.abort()
            return
        self._read = (self._read + len(data)) % len(_BLOCK)
        self.known = True
        self._program.received[self.kind] += len(data)
        self._program.flowing[self.kind].add(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._program.finish(self, str(error or self._why))

    def write_piece(self) -> None:
        if not self._paused:
            self._pieces += 1
            self._write(_PIECE if self._pieces % 32 else _CHUNK)

    def _write_on(self) -> None:
        """Write until the other end does not read, with turns for the others; at a pace, one piece."""
        if self._program.period:
            self.write_piece()
            return
        for _ in range(_IN_A_ROW):
            if self._paused or self._transport.is_closing():
                return
            self._write(_CHUNK)
        if self._paused:
            return  # who resumes it writes on
        asyncio.get_running_loop().call_soon(self._write_on)

    def _write(self, size: int) -> None:
        self._transport.write(_REPEATED[self._written : self._written + size])
        self._written = (self._written + size) % len(_BLOCK)


async def _main() -> None:
    program = _Program()
    server = await asyncio.get_running_loop().create_server(
        lambda: program.end_of("server"), "127.0.0.1", 0, backlog=4096
    )
    say({"port": server.sockets[0].getsockname()[1]})
    writing = asyncio.get_running_loop().create_task(program.write_pieces())
    await obey(
        {
            "connect": program.connect,
            "look-again": program.look_again,
            "flowing": program.flows,
            "report": program.report,
        }
    )
    writing.cancel()


if __name__ == "__main__":
    argparse.ArgumentParser().parse_args()
    with suppress(KeyboardInterrupt):
        asyncio.run(_main())
    sys.exit(0)
