"""`appliance fleet accept`: the part of a node in `appliance fleet push`, which runs it there."""

import contextlib
import fcntl
import hashlib
import os
import select
import signal
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click
import msgspec

from appliance.console.fleet.asking import Way
from appliance.console.here.files import unusable_files
from appliance.console.output.refusal import Refused
from appliance.console.reload import ReloadUnavailable, ask_reload
from appliance.core.fleet.push import Step, next_step
from appliance.model.loading.loading import Loaded
from appliance.model.messages.problems import Problem, Severity
from appliance.model.paths import Paths
from appliance.net.files import config_file, snapshots, state_files
from appliance.net.files.atomic_write import write_atomically
from appliance.net.files.standard_input import PATIENCE
from appliance.net.files.state_files import FileUnusable
from appliance.net.sources.judging import OperatorsFiles, as_answer, collect, load
from appliance.net.sources.read_files import ReadFiles
from appliance.translation.combined_files import together
from appliance.wire.lines.control import Answer, AnswerProblem, bad, good

FORMER: Final = ".former"
"""What the name of the file that was replaced last ends with."""

_MODE: Final = 0o640

_CHUNK: Final = 1 << 16
_LONGEST: Final = 64

_AGAIN: Final = "give this node what it lacks, then: appliance fleet push"
_TOGETHER: Final = " with "
"""What is between the names of files in the source of a configuration."""

_WAITS: Final = 3.0
"""How many times the longest step of another node its next word is awaited."""


class FileBusy(Exception):  # noqa: N818  # said to the one who comes second
    """Another push is under way here."""


class ReplacedFile:
    """The file at a path, or where a link there leads; the one before stays beside it."""

    def __init__(self, path: Path) -> None:
        self._path = path.resolve()
        self._former = state_files.read(self._path, limit=config_file.LIMIT)
        self._mode, self._group = _MODE, -1
        with contextlib.suppress(FileNotFoundError):
            found = self._path.stat()
            self._mode, self._group = found.st_mode & 0o777, found.st_gid

    def objection(self) -> str | None:
        """Return why it cannot be replaced, None if it can."""
        folder = self._path.parent
        if not folder.is_dir():
            return f"{folder} is no directory"
        return None if os.access(folder, os.W_OK | os.X_OK) else f"{folder} cannot be written"

    def replace(self, content: bytes) -> None:
        """Give it another content; raises OSError, and then it has its own."""
        if self._former is not None and self._former != content:
            self._write(self._path.with_name(self._path.name + FORMER), self._former)
        self._write(self._path, content)

    def put_back(self) -> None:
        """Give it the content that it had first; raises OSError."""
        if self._former is None:
            self._path.unlink(missing_ok=True)
        else:
            self._write(self._path, self._former)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let no second one replace files in this directory meanwhile; raises FileBusy, OSError."""
        descriptor = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError as error:
            raise FileBusy("another push is under way on this node") from error
        finally:
            os.close(descriptor)

    def _write(self, path: Path, content: bytes) -> None:
        write_atomically(path, content, mode=self._mode, group=self._group)


class TransferCut(Exception):  # noqa: N818  # what became of the connection
    """The file did not arrive as it was sent; nothing has been done with it."""


class Orders:
    """Standard input, or another descriptor."""

    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor = descriptor
        self._buffer = bytearray()

    def file(self, *, size: int, checksum: str) -> bytes:
        """Return the next `size` bytes, which have this SHA-256; raises TransferCut."""
        while len(self._buffer) < size:
            if not self._more(PATIENCE):
                raise TransferCut(f"only {len(self._buffer)} of {size} bytes have arrived")
        content = bytes(self._buffer[:size])
        del self._buffer[:size]
        if hashlib.sha256(content).hexdigest() != checksum:
            raise TransferCut("the file has not arrived as it was sent: its SHA-256 is another one")
        return content

    def word(self, *, seconds: float) -> str | None:
        """Return the next line; None at the end, for silence, and for what is too long."""
        until = time.monotonic() + seconds
        while b"\n" not in self._buffer:
            if len(self._buffer) > _LONGEST or not self._more(until - time.monotonic()):
                return None
        line, _, rest = bytes(self._buffer).partition(b"\n")
        self._buffer = bytearray(rest)
        return line.decode(errors="replace")

    def _more(self, seconds: float) -> bool:
        ready, _, _ = select.select([self._descriptor], [], [], max(0.0, seconds))
        try:
            data = os.read(self._descriptor, _CHUNK) if ready else b""
        except OSError:
            return False
        self._buffer += data
        return bool(data)


@click.command(epilog="Example: appliance fleet accept --size 5 --sha256 HEX")
@click.option(
    "--size", type=click.IntRange(0, config_file.LIMIT), default=0, metavar="BYTES", help="Its length."
)
@click.option("--sha256", "checksum", default="", metavar="HEX", help="Its checksum.")
@click.pass_obj
def accept(way: Way, *, size: int, checksum: str) -> None:
    """Check, apply and keep a configuration: what `appliance fleet push` runs on each node.

    The file comes on standard input, then the line `apply`, then `keep`. After each a line of JSON says what
    was done: ok, step, errors, warnings. At the end of input, after any other line, or after silence, the
    file before is put back and applied.
    """
    for each in (signal.SIGHUP, signal.SIGINT):  # the end of the connection is noticed by what is read
        signal.signal(each, signal.SIG_IGN)
    orders = Orders()
    try:
        content = orders.file(size=size, checksum=checksum)
        file = ReplacedFile(way.paths.config)
        with file.held():
            done = _Node(way, file, content).obey(orders)
    except (TransferCut, FileBusy, FileUnusable, OSError) as error:
        raise Refused(f"{way.paths.config}: {error}; nothing has changed", step=_AGAIN) from error
    if done is not Step.KEPT:
        raise SystemExit(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """One line of the answer."""

    ok: bool
    step: Step
    errors: Sequence[AnswerProblem]
    warnings: Sequence[AnswerProblem] = ()
    runs: bool = True


class _Node:
    """This node: follows orders, and goes back unless the order to keep comes."""

    def __init__(self, way: Way, file: ReplacedFile, content: bytes) -> None:
        self._paths = way.paths
        self._timeout = way.timeout
        self._file = file
        self._content = content

    def obey(self, orders: Orders) -> Step:
        """Do one step after the other; return the last one."""
        done, said = Step.CHECKED, self._check()
        while True:
            heard = _say(said)
            order = None
            if heard and said.ok and done is not Step.BACK:
                order = orders.word(seconds=_WAITS * self._timeout) if done is not Step.KEPT else None
            following = next_step(done, order, succeeded=said.ok)
            if following is None:
                return done
            done, said = following, self._do(following)

    def _do(self, step: Step) -> _Said:
        match step:
            case Step.APPLIED:
                return self._apply()
            case Step.BACK:
                return self._go_back()
            case _:
                return _Said(ok=True, step=step, errors=())

    def _check(self) -> _Said:
        given = ReadFiles({str(self._paths.config): self._content})
        found = collect(self._paths, given)
        loaded = load(found, number=0)
        lacks = [*filter(None, [self._file.objection(), _other_file(self._paths)])]
        errors = (*loaded.errors, *_missing(loaded, found), *(Problem(message=each) for each in lacks))
        return _Said(
            ok=not errors,
            step=Step.CHECKED,
            errors=as_answer(errors, self._paths.config),
            warnings=as_answer(loaded.warnings, self._paths.config),
            runs=_runs(self._paths),
        )

    def _apply(self) -> _Said:
        try:
            self._file.replace(self._content)
        except OSError as error:
            return _Said(ok=False, step=Step.APPLIED, errors=(_problem(error),))
        answer = self._reloaded()
        warnings = msgspec.convert(answer.values.get("warnings", []), list[AnswerProblem])
        return _Said(ok=answer.ok, step=Step.APPLIED, errors=answer.errors, warnings=warnings)

    def _go_back(self) -> _Said:
        try:
            self._file.put_back()
        except OSError as error:
            return _Said(ok=False, step=Step.BACK, errors=(_problem(error),))
        answer = self._reloaded()
        return _Said(ok=answer.ok, step=Step.BACK, errors=answer.errors)

    def _reloaded(self) -> Answer:
        """Have the appliance apply its file; where none runs, the next start does."""
        if not _runs(self._paths):
            return good()
        try:
            return ask_reload(self._paths, self._timeout)
        except ReloadUnavailable as error:
            return bad(str(error))


def _missing(loaded: Loaded, found: OperatorsFiles) -> Iterator[Problem]:
    """Yield the files that the configuration refers to and this node lacks: a push does not bring them."""
    if loaded.snapshot is None:
        return
    document, _ = together(found.document, found.translations, source=str(found.config))
    for each in unusable_files(loaded.snapshot):
        if each.severity is Severity.ERROR:
            yield document.problem(each, source=str(found.config))


def _say(said: _Said) -> bool:
    """Write a line; return whether anybody can read it."""
    try:
        click.echo(msgspec.json.encode(said))
    except OSError:
        return False
    return True


def _runs(paths: Paths) -> bool:
    return any(map(_listens, (paths.supervisor_socket, paths.reload_socket)))


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection, contextlib.suppress(OSError):
        connection.settimeout(1.0)
        connection.connect(str(path))
        return True
    return False


def _other_file(paths: Paths) -> str | None:
    """Return the objection that the running appliance uses another file than the one that is replaced."""
    accepted = snapshots.readable(paths.accepted)
    if accepted is None or not _runs(paths) or str(paths.config) in accepted.source.split(_TOGETHER):
        return None
    return f"the appliance uses {accepted.source}, and not {paths.config}: set APPLIANCE_CONFIG there"


def _problem(error: OSError) -> AnswerProblem:
    return AnswerProblem(message=f"{error.filename}: {error.strerror}")
