"""Processes that a test or bench starts, and what /proc says about any process."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from support.processes.waiting import wait_until

_TICKS: Final = os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def running(
    arguments: Sequence[str],
    *,
    log: Path,
    environment: Mapping[str, str] | None = None,
    patience: float = 5.0,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program with its output in `log`; at the end TERM it, and KILL it after `patience` seconds."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            list(arguments), stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment
        )
    try:
        yield process
    finally:
        end(process, patience=patience)


def end(process: subprocess.Popen[bytes], *, patience: float = 5.0) -> None:
    """TERM a child, wait, KILL it if it is still there after `patience` seconds."""
    if process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience)
    if process.poll() is None:
        process.kill()
        process.wait()


def kill(pid: int) -> None:
    """KILL a process and return when it is gone (or a zombie, which does nothing any more)."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not alive(pid), what=f"process {pid} is gone")


def alive(pid: int) -> bool:
    """Return whether the process exists and is not a zombie."""
    try:
        return _stat(pid)[0] not in "ZX"
    except OSError:
        return False


def parent(pid: int) -> int:
    """Return the process id of the parent, 0 when the process is gone."""
    try:
        return int(_stat(pid)[1])
    except OSError:
        return 0


def children(pid: int) -> list[int]:
    """Return the processes whose parent it is."""
    return [each for each in _all() if parent(each) == pid]


def cpu_seconds(pid: int) -> float:
    """Return user and system time that the process has used."""
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / _TICKS


def resident(pid: int) -> int:
    """Return the resident set in bytes."""
    return _rollup(pid)["Rss"]


def proportional(pid: int) -> int:
    """Return the proportional set in bytes: shared pages count for their share."""
    return _rollup(pid)["Pss"]


def descriptors(pid: int) -> int:
    """Return how many descriptors the process has open."""
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def with_environment(setting: str) -> list[int]:
    """Return the processes that were started with `NAME=value` in their environment."""
    wanted = setting.encode()
    return sorted(pid for pid in _all() if wanted in _environment(pid) and alive(pid))


def command_line(pid: int) -> str:
    """Return the arguments of a process, "" when it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def _all() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _stat(pid: int) -> list[str]:
    # The second field is the name in parentheses, and may hold anything.
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _rollup(pid: int) -> dict[str, int]:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    words = (line.split() for line in lines)
    return {fields[0].rstrip(":"): int(fields[1]) * 1024 for fields in words}
