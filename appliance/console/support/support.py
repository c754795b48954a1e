"""`appliance support`: one archive for a ticket."""

import io
import os
import shutil
import socket
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self

import click

from appliance.console.output.printing import print_json
from appliance.console.output.refusal import Refused
from appliance.console.support.configuration import Configuration
from appliance.console.support.machine import machine_parts
from appliance.console.support.parts import Part, PartMissing, as_json
from appliance.console.support.running import running_parts
from appliance.model.messages.quoting import printable
from appliance.model.messages.redaction import scrubbed
from appliance.model.paths import Paths

MOST_PART: Final = 4 << 20
"""Longest part, bytes; a longer one is cut at its end."""

MOST: Final = 64 << 20
"""Longest sum of all parts, bytes, before they are compressed."""

_READ_WRITE: Final = 0o600


class ArchiveFull(Exception):  # noqa: N818  # an outcome, reported with the part that is left out
    """There is no room left."""


class Archive:
    """A compressed tar file at an unused path; raises OSError if the path exists.

    If the block ends with an error the file is removed: half an archive would be mistaken for a whole one.
    """

    def __init__(self, path: Path, *, folder: str, now: float) -> None:
        self._path = path
        self._folder = folder
        self._now = now
        self._left = MOST
        descriptor = os.open(
            path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, _READ_WRITE
        )
        self._file: IO[bytes] = os.fdopen(descriptor, "wb")
        self._tar = tarfile.open(fileobj=self._file, mode="w:gz")  # noqa: SIM115  # closed by __exit__

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        with self._file:
            self._tar.close()
        if kind is not None:
            self._path.unlink(missing_ok=True)

    def add(self, name: str, text: str) -> bool:
        """Write one part; return whether it was cut. Raises ArchiveFull, OSError."""
        data = text.encode(errors="backslashreplace")
        kept = data[:MOST_PART]
        if len(kept) > self._left:
            raise ArchiveFull(f"the archive is full: {MOST >> 20} MB before it is compressed")
        self._left -= len(kept)
        self._put(name, kept)
        return len(data) > len(kept)

    def add_index(self, name: str, text: str) -> None:
        """Write the index of all parts, for which space is reserved. Raises OSError."""
        self._put(name, text.encode(errors="backslashreplace"))

    def _put(self, name: str, data: bytes) -> None:
        entry = tarfile.TarInfo(f"{self._folder}/{name}")
        entry.size, entry.mtime, entry.mode = len(data), int(self._now), _READ_WRITE
        self._tar.addfile(entry, io.BytesIO(data))


_STANDARD_OUTPUT: Final = "-"

_MOST_SECONDS: Final = 60.0
"""Seconds after which no further part is begun; each one waits for seconds at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of one part: `missing` is why it is not there, `cut` whether it is incomplete."""

    name: str
    missing: str | None = None
    cut: bool = False


@click.command(epilog="Example: appliance support /tmp/ticket-4711.tar.gz")
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
@click.option("--json", "as_json_", is_flag=True, help="Print the file and what became of each part as JSON.")
@click.pass_obj
def support(paths: Paths, *, file: Path | None, as_json_: bool) -> None:
    """Write an archive (tar.gz) for a support ticket: FILE, or a file named by host and time; `-` is stdout.

    Status, events, the configuration and the last snapshots, versions, processes with their limits, nftables'
    rules, addresses, routes, links, boards, and the end of the log where it is a file. Passwords, keys,
    tokens, arguments of commands and addresses of webhooks are replaced by `***`, everywhere; environment
    variables are left out. Names, addresses and ports are in it: check it before you send it.

    Only its owner can read the file, and an existing file is never overwritten. Missing parts are listed with
    the reason, here and in `parts.json` of the archive. Changes nothing; collects more if run as root.

    JSON: file, and parts, each with name, missing (the reason, or null) and cut.
    """
    now = time.time()
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
    folder = f"appliance-support-{socket.gethostname()}-{stamp}"
    if str(file) == _STANDARD_OUTPUT:
        with tempfile.TemporaryDirectory(prefix="appliance-support-") as scratch:
            target = Path(scratch) / folder
            _tell_missing(_collected(paths, target, folder, now))
            with target.open("rb") as written:
                shutil.copyfileobj(written, sys.stdout.buffer)
        return
    target = file or Path(f"{folder}.tar.gz")
    outcomes = _collected(paths, target, folder, now)
    if as_json_:
        print_json({"file": str(target), "parts": outcomes})
        return
    _tell_missing(outcomes)
    click.echo(
        f"{target}: {sum(each.missing is None for each in outcomes)} parts. Look at it before you send it."
    )


def _collected(paths: Paths, target: Path, folder: str, now: float) -> list[Outcome]:
    """Write the archive; return the outcome of each part. Raises UsageError, Refused."""
    try:
        with Archive(target, folder=folder, now=now) as archive:
            outcomes = list(_written(archive, paths))
            archive.add_index("parts.json", as_json(outcomes))
    except FileExistsError as error:
        raise click.UsageError(f"{target} already exists: name another file, or remove it") from error
    except OSError as error:
        reason = error.strerror or error
        said = f"{target}: {reason}"
        raise Refused(said, step="name a file in a directory with room, where this user may write") from error
    return outcomes


def _tell_missing(outcomes: Iterable[Outcome]) -> None:
    """Report on standard error what is not in the archive."""
    for each in outcomes:
        if each.missing:
            click.echo(f"not in it: {each.name}: {each.missing}", err=True)
        elif each.cut:
            click.echo(f"cut: {each.name}", err=True)


def _written(archive: Archive, paths: Paths) -> Iterator[Outcome]:
    """Write part by part; yield the outcome of each."""
    configuration = Configuration(paths)
    ends = time.monotonic() + _MOST_SECONDS
    for part in (*configuration.parts(), *running_parts(paths), *machine_parts(paths)):
        if time.monotonic() > ends:
            yield Outcome(name=part.name, missing=f"left out after {_MOST_SECONDS:g} s")
            continue
        yield _outcome(archive, part, configuration.secrets)


def _outcome(archive: Archive, part: Part, secrets: frozenset[str]) -> Outcome:
    """Write one part; raises OSError if the archive cannot be written."""
    try:
        text = scrubbed(part.made(), secrets)
    except PartMissing as error:
        return Outcome(name=part.name, missing=scrubbed(printable(str(error)), secrets))
    except Exception as error:  # noqa: BLE001  # whatever one part's trouble is, it is reported, and the others are there
        return Outcome(name=part.name, missing=scrubbed(_why(error), secrets))
    try:
        return Outcome(name=part.name, cut=archive.add(part.name, text))
    except ArchiveFull as error:
        return Outcome(name=part.name, missing=str(error))


def _why(error: Exception) -> str:
    return printable(f"{type(error).__name__}: {error}")
