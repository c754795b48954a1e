"""Data from the running appliance: its status, every program's own answer, the boards, events and log."""

import contextlib
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec
from rich.console import Console

from appliance.console.status.status import current_status
from appliance.console.status.status_tables import tables
from appliance.console.support.parts import Part, PartMissing, as_json
from appliance.model.paths import Paths
from appliance.model.snapshot.snapshot import SnapshotError
from appliance.net.boards.board_reader import BoardReader
from appliance.net.boards.worker_boards import worker_board_paths
from appliance.net.control.control_client import ask
from appliance.net.files import snapshots
from appliance.net.observing.observation import program_sockets
from appliance.net.supervision.supervisor_rpc import SupervisorClient
from appliance.wire.boards import health_board, vrrp_board, worker_board
from appliance.wire.lines.control import Question

_TIMEOUT: Final = 5.0
_TAIL: Final = 2 << 20
_MOST_WORKERS: Final = 64
_WIDTH: Final = 200
_PASSWORD: Final = re.compile(r"^(\s*password)\b.*$", re.MULTILINE)


def running_parts(paths: Paths) -> Iterator[Part]:
    """Yield the files of the runtime directory, and the answers of the programs there."""
    yield Part(name="status.json", made=lambda: as_json(msgspec.Raw(current_status(paths).json())))
    yield Part(name="status.txt", made=partial(_status_text, paths))
    yield Part(name="supervisor.json", made=partial(_supervised, paths))
    for path in sorted(program_sockets(paths)):
        yield Part(name=f"programs/{path.stem}.json", made=partial(_answer, path))
    yield Part(name="boards/health.json", made=partial(_board, paths.health_board, health_board.decode))
    yield Part(name="boards/vrrp.json", made=partial(_board, paths.vrrp_board, vrrp_board.decode))
    for path in worker_board_paths(paths.runtime)[:_MOST_WORKERS]:
        yield Part(name=f"boards/{path.stem}.json", made=partial(_board, path, worker_board.decode))
    if paths.bird_config.exists():
        yield Part(name="bird/bird.conf", made=partial(_bird_config, paths))
        yield Part(name="bird/bird.log", made=partial(_tail, paths.bird_log, paths))
    yield Part(name="files.txt", made=partial(_listed, paths))
    yield from _events(paths)
    yield Part(name="log.txt", made=partial(_log, paths))


def _status_text(paths: Paths) -> str:
    with open(os.devnull, "w") as nowhere:  # noqa: PTH123  # a device
        console = Console(record=True, width=_WIDTH, file=nowhere)
        console.print(tables(current_status(paths), supervisorctl=paths.supervisorctl))
        return console.export_text()


def _supervised(paths: Paths) -> str:
    return as_json(SupervisorClient(paths.supervisor_socket, timeout=_TIMEOUT).processes())


def _answer(path: Path) -> str:
    answer = ask(path, Question(command="status"), timeout=_TIMEOUT)
    return as_json({"ok": answer.ok, "errors": answer.errors, **answer.values})


def _board(path: Path, decode: Callable[[bytes], object]) -> str:
    with BoardReader(path) as reader:
        return as_json(decode(reader.read()))


def _listed(paths: Paths) -> str:
    """Return the files of the runtime and state directories: sizes, owners, ages."""
    lines = []
    for root in (paths.runtime, paths.state):
        lines.append(f"{root}:")
        for path in sorted(islice(root.rglob("*"), 5000)):
            with contextlib.suppress(OSError):
                found = path.lstat()
                at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(found.st_mtime))
                lines.append(
                    f"  {found.st_mode:o} {found.st_uid}:{found.st_gid} {found.st_size} {at}"
                    f" {path.relative_to(root)}"
                )
    return "\n".join(lines) + "\n"


def _bird_config(paths: Paths) -> str:
    """Return BIRD's configuration without passwords, also those that the present file has no more."""
    return _PASSWORD.sub(r"\1 (left out);", _tail(paths.bird_config, paths))


def _events(paths: Paths) -> Iterator[Part]:
    found = [path for path in sorted(paths.state.glob("events*")) if path.is_file()]
    for path in found:
        yield Part(name=f"events/{path.name}", made=partial(_tail, path, paths))
    if not found:
        yield Part(name="events", made=_no_events)


def _no_events() -> str:
    raise PartMissing("there are no events in the state directory")


def _log(paths: Paths) -> str:
    with contextlib.suppress(SnapshotError):
        accepted = snapshots.for_readers(paths)
        if accepted and accepted.log.file:
            return _tail(Path(accepted.log.file), paths)
    raise PartMissing(
        "the log goes to standard output: `journalctl -u appliance`, `podman logs` or `kubectl logs` have it"
    )


def _tail(path: Path, paths: Paths) -> str:
    """Return the last lines of a file, whole ones: in half a line a secret would not be recognised.

    The appliance's user may replace any file by these names, so root reads only files that this user owns.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != _owner(paths):
            raise PartMissing(f"{path} is no file of the appliance's user: it is not looked at")
        file.seek(0, os.SEEK_END)
        size = file.tell()
        file.seek(max(0, size - _TAIL))
        text = file.read(_TAIL).decode(errors="replace")
        return text if size <= _TAIL else text.partition("\n")[2]


def _owner(paths: Paths) -> int:
    """Return the appliance's user: the owner of its state directory, or of the runtime directory."""
    there = paths.state if paths.state.exists() else paths.runtime
    return there.stat().st_uid
