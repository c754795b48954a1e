"""The load generator that `support.load.load` steers, a process of its own."""

import argparse
import asyncio
import errno
import sys
import time
from collections import Counter
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import count

from support.processes.steering import obey, say

_TIMEOUT = 10.0
_AFTER_LOSS = 0.1
_NAMES = {
    errno.ECONNREFUSED: "refused",
    errno.ECONNRESET: "reset",
    errno.EPIPE: "reset",
    errno.EADDRNOTAVAIL: "no-ports",
    errno.EMFILE: "no-descriptors",
}


class _WrongError(Exception):
    """Another answer than the right one."""


class _EndError(Exception):
    """The other side ended the connection where an answer was due."""


@dataclass(slots=True)
class _Generator:
    host: str
    port: int
    rate: float
    pause: float
    renew: bool
    completed: int = 0
    under_way: int = 0
    lines: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    failed_at: list[float] = field(default_factory=list)
    servers: Counter[str] = field(default_factory=Counter)
    latencies: list[float] = field(default_factory=list)
    sessions: list[dict[str, object]] = field(default_factory=list)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    tokens: "count[int]" = field(default_factory=count)

    def spawn_sessions(self, number: int) -> None:
        for _ in range(number):
            self._spawn(self._session())

    async def run(self) -> None:
        """Start connections at the rate, however long each takes."""
        due = time.monotonic()
        while True:
            if self.rate <= 0:
                await asyncio.sleep(0.05)
                due = time.monotonic()
                continue
            # After a stall of this process the debt is not paid in one burst.
            due = max(due + 1 / self.rate, time.monotonic() - 0.2)
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            if self.rate <= 0:
                continue
            self.under_way += 1
            self._spawn(self._one())

    def _spawn(self, coroutine: "asyncio._CoroutineLike[None]") -> None:
        task = asyncio.get_running_loop().create_task(coroutine)  # type: ignore[arg-type]  # a coroutine
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _one(self) -> None:
        start = time.monotonic()
        try:
            async with asyncio.timeout(_TIMEOUT):
                self.servers[await self._ask_once()] += 1
        except (OSError, _WrongError, _EndError) as error:
            self.failures[_name(error)] += 1
            self.failed_at.append(time.time())
            return
        finally:
            self.under_way -= 1
        self.completed += 1
        self.latencies.append(time.monotonic() - start)

    async def _ask_once(self) -> str:
        reader, writer = await asyncio.open_connection(self.host, self.port)
        try:
            return await self._line(reader, writer)
        finally:
            writer.close()

    async def _line(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
        token = next(self.tokens)
        writer.write(b"line %d\n" % token)
        answer = await reader.readline()
        if not answer:
            raise _EndError
        server, _, got = answer.decode(errors="replace").strip().partition(" ")
        if got != str(token):
            raise _WrongError
        return server

    async def _session(self) -> None:
        record: dict[str, object] = {
            "server": "",
            "started": time.time(),
            "answered": 0.0,
            "ended": 0.0,
            "how": "",
        }
        self.sessions.append(record)
        try:
            async with asyncio.timeout(_TIMEOUT):
                reader, writer = await asyncio.open_connection(self.host, self.port)
            with closing(writer):
                await self._talk(record, reader, writer)
        except (OSError, _WrongError, _EndError) as error:
            record["ended"], record["how"] = time.time(), _name(error)
        if self.renew:
            await asyncio.sleep(_AFTER_LOSS)
            self.spawn_sessions(1)

    async def _talk(
        self, record: dict[str, object], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while True:
            async with asyncio.timeout(_TIMEOUT):
                server = await self._line(reader, writer)
            if record["server"] not in ("", server):
                raise _WrongError
            if not record["server"]:
                record["server"], record["answered"] = server, time.time()
            self.lines += 1
            # Between lines an end or a reset is noticed when it comes, and bytes that nobody asked for too.
            with suppress(TimeoutError):
                async with asyncio.timeout(self.pause):
                    raise _WrongError if await reader.read(1) else _EndError

    def report(self, _: dict[str, object]) -> dict[str, object]:
        ordered = sorted(self.latencies) or [0.0]
        return {
            "completed": self.completed,
            "under_way": self.under_way,
            "failures": dict(self.failures),
            "failed_at": self.failed_at,
            "servers": dict(self.servers),
            "sessions": self.sessions,
            "lines": self.lines,
            "latency_p50": ordered[len(ordered) // 2],
            "latency_p99": ordered[len(ordered) * 99 // 100],
            "latency_max": ordered[-1],
        }

    def set_rate(self, values: dict[str, object]) -> dict[str, object]:
        self.rate = float(str(values["rate"]))
        return {}

    def open(self, values: dict[str, object]) -> dict[str, object]:
        self.spawn_sessions(int(str(values["number"])))
        return {}


def _name(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "timeout"
    if isinstance(error, OSError):
        return _NAMES.get(error.errno or 0, str(error))
    return "wrong" if isinstance(error, _WrongError) else "end"


async def _main(arguments: argparse.Namespace) -> None:
    load = _Generator(
        host=arguments.host,
        port=arguments.port,
        rate=arguments.rate,
        pause=arguments.pause,
        renew=arguments.renew,
    )
    load.spawn_sessions(arguments.sessions)
    say({})
    running = asyncio.get_running_loop().create_task(load.run())
    await obey({"report": load.report, "rate": load.set_rate, "open": load.open})
    running.cancel()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--sessions", type=int, required=True)
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--pause", type=float, required=True)
    parser.add_argument("--renew", action="store_true")
    with suppress(KeyboardInterrupt):
        asyncio.run(_main(parser.parse_args()))
    sys.exit(0)
