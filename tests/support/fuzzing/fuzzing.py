"""Fuzzing of whatever takes bytes from outside, and what has to hold for every input.

The invariants, for any bytes at all:

1. Nothing but the module's own error class escapes: no IndexError, no RecursionError, no UnicodeDecodeError.
2. Each input takes less than `seconds` of processor time, however it is made.
3. The memory of the process grows by less than `_ROOM` while it is read.
4. What was understood can be said: encoded and decoded again it is the same.

A target's function states what else must hold of what it has read, by asserting it.
"""

import contextlib
import hashlib
import resource
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

from support.fuzzing.mutation import Mutator

KEPT: Final = Path(__file__).parents[2] / "fuzz" / "kept"
"""Inputs that were not taken as they should, one file each in the directory of their target."""

FOUND: Final = Path(__file__).parents[3] / ".fuzz"
"""Where a run leaves what it finds; git does not see it."""

_ROOM: Final = 512 << 20
_SHRINKING: Final = 5.0  # seconds


class Broken(AssertionError):  # noqa: N818  # reads as what happened in a test's report
    """An input for which an invariant does not hold."""


class TooLong(BaseException):  # no `except Exception` of the subject may take it
    """An input that takes more processor time than it may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What is fed. `run` takes one input, and may raise nothing but `errors`.

    `mend` makes a damaged input plausible again, its checksum right say; half of the inputs are mended.
    """

    name: str
    run: Callable[[bytes], object]
    seeds: tuple[bytes, ...]
    errors: tuple[type[Exception], ...] = ()
    words: tuple[bytes, ...] = ()
    mend: Callable[[bytes], bytes] | None = None
    longest: int = 16384
    seconds: float = 2.0

    def __str__(self) -> str:
        """Name it in a test's id."""
        return self.name


def round_trip(decode: Callable[[bytes], object], encode: Callable[..., bytes]) -> Callable[[bytes], None]:
    """Return a function that decodes, and demands that what was understood can be said again."""

    def run(data: bytes) -> None:
        said = encode(decode(data))
        assert encode(decode(said)) == said

    return run


def kept(target: Target) -> list[bytes]:
    """Return the inputs that were once not taken as they should."""
    return [path.read_bytes() for path in sorted((KEPT / target.name).glob("*"))]


def fuzz(target: Target, *, seconds: float, seed: int) -> int:
    """Feed a target for a time, first with what is kept, all of it and all seeds; return how many inputs.

    Raises Broken with the shortest input found for which an invariant does not hold.
    """
    until = time.monotonic() + seconds
    always, count = len(kept(target)) + len(target.seeds), 0
    with _limits():
        for data in _inputs(target, seed):
            count += 1
            if problem := _problem(target, data):
                raise Broken(_report(target, _shrunk(target, data, problem), seed=seed))
            if time.monotonic() >= until and count > always:
                return count
    raise AssertionError("the inputs have an end")


def _inputs(target: Target, seed: int) -> Iterator[bytes]:
    random = Random(f"{seed} {target.name}")  # noqa: S311  # has to be the same again
    yield from kept(target)
    for data in Mutator(random, target.seeds, words=target.words, longest=target.longest):
        yield target.mend(data) if target.mend and random.random() < 0.5 else data


def _problem(target: Target, data: bytes) -> str:
    """Return what is wrong with how an input is taken, "" where it is taken well."""
    signal.setitimer(signal.ITIMER_VIRTUAL, target.seconds)
    try:
        target.run(data)
    except target.errors:
        return ""
    except TooLong:
        return f"more than {target.seconds:g} s of processor time"
    except Exception as error:  # noqa: BLE001  # that is what is looked for
        return f"{type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
    return ""


def _shrunk(target: Target, data: bytes, problem: str) -> tuple[bytes, str]:
    """Return a shorter input with a problem of the same kind, and that."""
    until = time.monotonic() + _SHRINKING
    kind, size = problem.partition(":")[0], max(1, len(data) // 2)
    while size and time.monotonic() < until:
        for at in range(0, len(data), size):
            shorter = data[:at] + data[at + size :]
            found = _problem(target, shorter)
            if found.partition(":")[0] == kind:
                data, problem = shorter, found
                break
        else:
            size //= 2
    return data, problem


def _report(target: Target, found: tuple[bytes, str], *, seed: int) -> str:
    data, problem = found
    path = FOUND / target.name / hashlib.sha256(data).hexdigest()[:12]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return (
        f"{target.name}: {problem}\n{data[:2000]!r}\nseed {seed}; to keep it as an example: "
        f"mkdir -p {KEPT / target.name} && cp {path} {KEPT / target.name}/"
    )


@contextlib.contextmanager
def _limits() -> Iterator[None]:
    """Let an input that takes too long or too much fail, instead of the machine."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    handler = signal.signal(signal.SIGVTALRM, _too_long)
    resource.setrlimit(resource.RLIMIT_AS, (used + _ROOM, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
        signal.signal(signal.SIGVTALRM, handler)


def _too_long(*_: object) -> None:
    raise TooLong
