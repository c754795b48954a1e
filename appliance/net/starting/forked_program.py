"""A program of ours in a process that has imported its modules, instead of in a new interpreter.

Its memory is then shared with all the other forks of that process, and it starts without imports. It finds
what it would find after an exec: no descriptor but those given, the usual handlers of signals, its own
environment and command line, random numbers of its own (Python and OpenSSL start again after a fork).

Only a process that has one thread and no loop of gevent becomes one so: the locks of other threads would stay
locked, and a loop belongs to the process that made it.
"""

import atexit
import contextlib
import fcntl
import gc
import importlib
import os
import runpy
import signal
import sys
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NoReturn

from gevent._hub_local import get_hub_if_exists

import appliance
from appliance.model.snapshot.snapshot import SnapshotError, decode
from appliance.net.logging import line_limiter, log, output
from appliance.net.logging.output import STDOUT
from appliance.net.process import python, shown_command

STANDARD: Final = frozenset({0, 1, 2})
"""Standard input, output and error."""

_FAILED: Final = 1
_LATER: Final = ("gevent.libev.corecext", "gevent.resolver.thread", "gevent.threadpool")
"""What gevent imports when the first loop is made."""

_AT_FIRST: Final = {number: signal.getsignal(number) for number in signal.valid_signals()}
"""The handlers with which the interpreter began, as it would again for the program."""

_kept: list[object] = []


class ReleaseFiles:
    """The installed release as it is on the disk; it changes when another one is installed in its place."""

    def __init__(self) -> None:
        self._at_first = _release()

    @property
    def changed(self) -> bool:
        """Return whether what has been imported is no longer what a new interpreter would run."""
        return _release() != self._at_first


def is_possible() -> bool:
    """Return whether this process can become one, and was started as `python.command` starts programs."""
    safe = sys.flags.safe_path and sys.flags.no_user_site
    alone = threading.active_count() == 1 and get_hub_if_exists() is None
    return bool(safe and alone and shown_command.can_be_shown())


def load(modules: Iterable[str]) -> None:
    """Import modules for all forks that follow, and exempt what is there from garbage collection.

    A collection would write to every object, and so copy its memory. The cache of attributes is emptied, as
    each entry that a fork replaces would be a write to the name of the former one.
    """
    missing = [each for each in (*_LATER, *modules) if each not in sys.modules]
    for each in missing:
        with contextlib.suppress(ImportError):  # the program itself says why it cannot start
            importlib.import_module(each)
    if missing:
        with contextlib.suppress(SnapshotError):
            decode(b"{}")  # what its types are is found out at the first use
        gc.collect()
    sys._clear_type_cache()  # noqa: SLF001  # documented, with this name
    gc.freeze()


def become(
    words: Sequence[str], environment: Mapping[str, str], *, descriptors: Mapping[int, int] | None = None
) -> NoReturn:
    """Run a command of `python.command` in this process, and end with it.

    `descriptors` are those that it has besides the standard ones: by their numbers there, the numbers of now.
    """
    status = _FAILED
    try:
        forget()
        _place(descriptors or {})
        close_others({*STANDARD, *(descriptors or {})})
        _surround(environment)
        shown_command.show(words, environment)
        status = _run(python.module_of(words), words[words.index("-m") + 2 :])
    except BaseException:  # noqa: BLE001  # the end of the process, whatever it was
        sys.excepthook(*sys.exc_info())
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def inheritable() -> dict[int, int]:
    """Return the descriptors that an exec would leave open."""
    found = {int(each.name) for each in Path("/proc/self/fd").iterdir()}
    return {each: each for each in sorted(found) if _is_inheritable(each)}


def _is_inheritable(descriptor: int) -> bool:
    try:
        return os.get_inheritable(descriptor)
    except OSError:  # the one by which they were listed
        return False


def forget() -> None:
    """Drop what there is of what the process was: its handlers of signals, its way to log."""
    signal.set_wakeup_fd(-1)
    for number, at_first in _AT_FIRST.items():
        if callable(signal.getsignal(number)) and signal.getsignal(number) != at_first:
            signal.signal(number, at_first if callable(at_first) else signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # as Python begins
    atexit._clear()  # noqa: SLF001  # else what the parent has to do at its end would be done here
    # Kept, as at its end each would close a number that is another file's by then.
    _kept.extend(
        output.output(place) for place in range(STDOUT, STDOUT + output.output.cache_info().currsize)
    )
    _kept.extend(each() for each in (log.lines, line_limiter.limiter) if each.cache_info().currsize)
    for cached in (log.lines, line_limiter.limiter, output.output):
        cached.cache_clear()


def close_others(kept: Collection[int]) -> None:
    """Close every descriptor but these."""
    start = 0
    for each in sorted(kept):
        if start < each:  # of an empty range from 0 Python makes all that there are
            os.closerange(start, each)
        start = each + 1
    os.closerange(start, os.sysconf("SC_OPEN_MAX"))


def _place(descriptors: Mapping[int, int]) -> None:
    """Give descriptors their numbers; one may have now the number that another one is to have."""
    above = max(descriptors, default=0) + 1
    moved = {number: fcntl.fcntl(now, fcntl.F_DUPFD_CLOEXEC, above) for number, now in descriptors.items()}
    for number, now in moved.items():
        os.dup2(now, number)


def _surround(environment: Mapping[str, str]) -> None:
    for name in os.environ.keys() - environment.keys():
        del os.environ[name]
    for name, value in environment.items():
        if os.environ.get(name) != value:
            os.environ[name] = value


def _run(module: str, arguments: Sequence[str]) -> int:
    """Run a module as `python -m` does, and return the exit status.

    Of one that is loaded `main` is called, as its last lines do: to run it again would write to each name
    that it imports, and so copy memory that all share.
    """
    sys.argv[:] = [module, *arguments]
    sys.orig_argv[:] = python.command(module, *arguments)
    try:
        if main := getattr(sys.modules.pop(module, None), "main", None):
            return _exit_status(main())
        runpy.run_module(module, run_name="__main__", alter_sys=True)  # it warns if it is loaded already
    except SystemExit as end:
        return _exit_status(end.code)
    return 0


def _exit_status(code: object) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    sys.stderr.write(f"{code}\n")
    return _FAILED


def _release() -> tuple[object, ...]:
    package = Path(appliance.__file__)
    try:
        found = package.stat()
    except OSError:
        return ()
    return Path(sys.executable).parent.resolve(), package.resolve(), found.st_ino, found.st_mtime_ns
