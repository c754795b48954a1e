"""Streams to an echoer that are checked byte by byte, and how long each of them has paused.

A program of its own, run by `CheckedStreams`. Each stream sends a piece of known bytes every period, whether
earlier ones have come back or not: a byte that is lost, doubled or moved, in either direction, is seen in
what comes back. A pause is the time from a piece until all of it is back. Where streams `return`, one that
was ended connects at once and again until it is taken, and its pause goes on until a piece has come back. So
does one that waits for 5 s: a packet may come upon what is left of an older connection of its port, and hang.
"""

import argparse
import asyncio
import random
import sys
import time
from collections import Counter, deque
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from statistics import median
from typing import Final, Self

from support.network.namespaces import Node
from support.processes.remote import Remote
from support.processes.steering import obey, say
from support.processes.waiting import wait_until

_RANDOM: Final = random.Random(14)  # noqa: S311  # no secret
_BLOCK: Final = _RANDOM.randbytes(60013)
_TWICE: Final = _BLOCK * 2
_LARGEST_PIECE: Final = 3000
_MOST_UNDER_WAY: Final = 20_000
_SLICES: Final = 20
_AT_ONCE: Final = 100
_CONNECT: Final = 30.0
_CONNECT_AGAIN: Final = 1.0
_AGAIN: Final = 0.02
_GIVEN_UP: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsReport:
    """Streams that are open, by who serves them and by address; those that were finished; why others ended.

    `behind` are those that have sent nothing since the last `mark` that came back.
    """

    open: int
    by: dict[str, int]
    to: dict[str, int]
    finished: int
    behind: int
    ended: dict[str, int]
    checked: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pauses:
    """Of each stream its longest pause in seconds: the longest of them, and the median."""

    longest: float
    median: float


class CheckedStreams:
    """The running program, in a node. Use it as a context manager."""

    def __init__(self, node: Node, *, port: int, period: float, returns: bool = False) -> None:
        arguments = ["--port", str(port), "--period", str(period), *(["--return"] if returns else [])]
        with node.inside():
            self._remote = Remote("support.network.checked_streams", *arguments)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._remote.close()

    def connect(self, host: str, number: int) -> None:
        """Open so many more, and wait until a piece has come back on each stream that there is."""
        wanted = self.report().open + number
        self._remote.ask("connect", host=host, number=number)
        wait_until(lambda: self._has(wanted), what=f"{wanted} streams are open", timeout=120.0)
        self.go_on()

    def go_on(self) -> None:
        """Wait until on each open stream a piece has come back that was sent from now on."""
        self._remote.ask("mark")
        wait_until(lambda: not self.report().behind, what="all streams go on", timeout=60.0)

    def finish(self, name: str) -> int:
        """Have the streams that this one serves end by themselves; return how many they were."""
        before = self.report()
        self._remote.ask("finish", name=name)
        count = before.by.get(name, 0)
        wait_until(
            lambda: self.report().finished >= before.finished + count,
            what=f"{count} streams to {name} have finished",
            timeout=60.0,
        )
        return count

    def report(self) -> StreamsReport:
        """Return what happened so far."""
        return StreamsReport(**self._remote.ask("report"))  # type: ignore[arg-type]  # its fields are those of the program below

    def pauses(self) -> Pauses:
        """Return the pauses since the last call."""
        return Pauses(**self._remote.ask("pauses"))  # type: ignore[arg-type]  # as above

    def _has(self, wanted: int) -> bool:
        now = self.report()
        return now.open >= wanted or bool(now.ended)


class _Stream(asyncio.Protocol):
    """One stream. `owed` is when the pause began that a lost connection has left, None for none.

    `returns` is that it is being connected again.
    """

    def __init__(self, program: "_Program", host: str, number: int) -> None:
        self.host = host
        self.name = ""
        self.longest = 0.0
        self.answered = 0.0  # when the last piece was sent that has come back
        self.owed: float | None = None
        self.returns = False
        self.transport: asyncio.Transport | None = None
        self._program = program
        self._begin = number * 7919 % len(_BLOCK)
        self._head = b""
        self._sent = self._checked = 0
        self._under_way: deque[tuple[int, float]] = deque()  # how much was sent with a piece, and when
        self._finishes = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport, self.name, self._head = transport, "", b""
        self._sent = self._checked = 0
        self._under_way.clear()

    def data_received(self, data: bytes) -> None:
        if not self.name:
            self._head += data
            name, end, data = self._head.partition(b"\n")
            if not end:
                return
            self.name = name.decode()
            self.send(time.monotonic())
        at = (self._begin + self._checked) % len(_BLOCK)
        if data != _TWICE[at : at + len(data)]:
            self._program.ended["wrong bytes"] += 1
            self._abort()
            return
        self._checked += len(data)
        self._program.checked += len(data)
        self._answer(time.monotonic())
        if self._finishes and not self._under_way:
            self._finish()

    def connection_lost(self, error: Exception | None) -> None:
        if self.transport is None:
            return
        self.transport, self.name = None, ""
        now = time.monotonic()
        self.owed = self.owed or (self._under_way[0][1] if self._under_way else now)
        self._program.lost(self, str(error or "closed"))

    def send(self, now: float) -> None:
        """Send a piece unless much is under way."""
        if (
            not self.name
            or self._finishes
            or self.transport is None
            or self._sent - self._checked > _MOST_UNDER_WAY
        ):
            return
        at, size = (self._begin + self._sent) % len(_BLOCK), _RANDOM.randint(1, _LARGEST_PIECE)
        self.transport.write(_TWICE[at : at + size])
        self._sent += size
        self._under_way.append((self._sent, now))

    def waits(self, now: float) -> bool:
        """Say whether it has waited for so long that a client would try another connection."""
        return bool(self._under_way) and now - self._under_way[0][1] > _GIVEN_UP

    def give_up(self) -> None:
        """Drop the connection: `connection_lost` is called next."""
        if self.transport is not None:
            self.transport.abort()

    def finish(self) -> None:
        """End when all that was sent has come back."""
        self._finishes = True
        if not self._under_way:
            self._finish()

    def pause(self, now: float) -> float:
        """Return the longest pause, that of now with it, and forget it."""
        begun = self.owed or (self._under_way[0][1] if self._under_way else now)
        longest, self.longest = max(self.longest, now - begun), 0.0
        return longest

    def _answer(self, now: float) -> None:
        while self._under_way and self._under_way[0][0] <= self._checked:
            _, begun = self._under_way.popleft()
            self.longest = max(self.longest, now - (self.owed or begun))
            self.owed, self.answered = None, begun

    def _finish(self) -> None:
        self._program.finished += 1
        self._abort()

    def _abort(self) -> None:
        transport, self.transport = self.transport, None
        self._program.streams.discard(self)
        if transport is not None:
            transport.close()


class _Program:
    def __init__(self, *, port: int, period: float, returns: bool) -> None:
        self.streams: set[_Stream] = set()
        self.ended: Counter[str] = Counter()
        self.finished = self.checked = 0
        self._port, self._period, self._returns = port, period, returns
        self._marked = 0.0
        self._number = 0
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()

    def connect(self, values: dict[str, object]) -> dict[str, object]:
        for _ in range(int(str(values["number"]))):
            self._number += 1
            self._start(self._connect(_Stream(self, str(values["host"]), self._number)))
        return {}

    def mark(self, _: dict[str, object]) -> dict[str, object]:
        self._marked = time.monotonic()
        return {}

    def finish(self, values: dict[str, object]) -> dict[str, object]:
        for each in [each for each in self.streams if each.name == values["name"]]:
            each.finish()
        return {}

    def report(self, _: dict[str, object]) -> dict[str, object]:
        named = [each for each in self.streams if each.name]
        return {
            "open": len(named),
            "by": dict(Counter(each.name for each in named)),
            "to": dict(Counter(each.host for each in named)),
            "finished": self.finished,
            "behind": sum(1 for each in self.streams if each.answered < self._marked),
            "ended": dict(self.ended),
            "checked": self.checked,
        }

    def pauses(self, _: dict[str, object]) -> dict[str, object]:
        now = time.monotonic()
        found = [each.pause(now) for each in self.streams] or [0.0]
        return {"longest": max(found), "median": median(found)}

    def lost(self, stream: _Stream, reason: str) -> None:
        """Count a stream that was ended from outside."""
        self.ended[reason] += 1
        if not self._returns:
            self.streams.discard(stream)
        elif not stream.returns:  # else it goes on trying
            stream.returns = True
            self._start(self._return(stream))

    async def send(self) -> None:
        """Have all send a piece every period, a part of them at a time; where they return, some give up."""
        while True:
            for part in range(_SLICES):
                await asyncio.sleep(self._period / _SLICES)
                now = time.monotonic()
                for each in list(self.streams)[part::_SLICES]:
                    if self._returns and each.waits(now):
                        each.give_up()
                    each.send(now)

    async def _connect(self, stream: _Stream) -> None:
        async with self._places:
            self.streams.add(stream)
            try:
                await self._open(stream, _CONNECT)
            except OSError as error:  # TimeoutError is one
                self.ended[f"connect: {error}"] += 1
                self.streams.discard(stream)

    async def _return(self, stream: _Stream) -> None:
        while stream.transport is None:
            try:
                await self._open(stream, _CONNECT_AGAIN)
            except OSError:
                await asyncio.sleep(_AGAIN)
        stream.returns = False

    async def _open(self, stream: _Stream, patience: float) -> None:
        loop = asyncio.get_running_loop()
        await asyncio.wait_for(loop.create_connection(lambda: stream, stream.host, self._port), patience)

    def _start(self, work: Coroutine[object, object, None]) -> None:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _main(arguments: argparse.Namespace) -> None:
    program = _Program(port=arguments.port, period=arguments.period, returns=arguments.returns)
    sending = asyncio.get_running_loop().create_task(program.send())
    say({})
    await obey(
        {
            "connect": program.connect,
            "mark": program.mark,
            "finish": program.finish,
            "report": program.report,
            "pauses": program.pauses,
        }
    )
    sending.cancel()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--period", type=float, required=True)
    parser.add_argument("--return", dest="returns", action="store_true")
    with suppress(KeyboardInterrupt):
        asyncio.run(_main(parser.parse_args()))
    sys.exit(0)
