"""Real Redis, PostgreSQL and MariaDB, each in a directory of its own, as servers that a check talks to."""

import contextlib
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from support.network.ports import free_port
from support.peers.serving import ENGLISH, serving
from support.processes.waiting import wait_until
from support.run import tools

POSTGRES: Final = "/usr/lib/postgresql/15/bin/postgres"
"""Where Debian has it, with `initdb` and `pg_isready` beside it: in nobody's PATH."""

_OWNER: Final = "postgres"
_RULES: Final = """
host all haproxy 127.0.0.1/32 trust
host all careful 127.0.0.1/32 scram-sha-256
host all nobody 127.0.0.1/32 reject
"""


@contextlib.contextmanager
def redis(*, password: str, master: int | None = None) -> Iterator[int]:
    """Run a Redis that wants a password; `master` is the port of the one that it is a replica of."""
    port = free_port()
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    command += ["--requirepass", password]
    if master is not None:
        command += ["--replicaof", "127.0.0.1", str(master), "--masterauth", password]
    with (
        tempfile.TemporaryDirectory(prefix="lb-redis-") as directory,
        # A replica is sent a dump by way of a file.
        serving([*command, "--dir", directory], port, directory),
    ):
        yield port


@contextlib.contextmanager
def postgres() -> Iterator[int]:
    """Run a PostgreSQL that trusts `haproxy`, asks `careful` for a password, and rejects `nobody`."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="lb-postgres-") as directory:
        data = Path(directory) / "data"
        as_owner = _as_postgres(directory)
        initdb = str(Path(POSTGRES).with_name("initdb"))
        make = [*as_owner, initdb, "-D", str(data), "-U", _OWNER, "-A", "trust", "--no-sync"]
        subprocess.run(make, check=True, capture_output=True, cwd=directory, env=ENGLISH)
        (data / "pg_hba.conf").write_text(_RULES)
        settings = ("listen_addresses=127.0.0.1", f"unix_socket_directories={directory}", "fsync=off")
        options = [word for each in settings for word in ("-c", each)]
        command = [*as_owner, POSTGRES, "-D", str(data), "-p", str(port), *options]
        with serving(command, port, directory):
            # It accepts before it serves; until then it refuses: "the database system is starting up".
            ask = [str(Path(POSTGRES).with_name("pg_isready")), "-h", "127.0.0.1", "-p", str(port)]
            wait_until(lambda: _succeeds(ask), what=f"{POSTGRES} serves")
            yield port


def _succeeds(command: Sequence[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _as_postgres(directory: str) -> list[str]:
    """Return what makes a command one of an ordinary user, as PostgreSQL wants it, who owns the directory."""
    if not tools.is_root():
        return []
    subprocess.run(["chown", _OWNER, directory], check=True)
    return ["setpriv", f"--reuid={_OWNER}", f"--regid={_OWNER}", "--clear-groups"]


@contextlib.contextmanager
def mariadb() -> Iterator[int]:
    """Run a MariaDB that knows no users, and so lets everybody in."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="lb-mariadb-") as directory:
        data = Path(directory) / "data"
        data.mkdir()
        command = ["mariadbd", "--no-defaults", "--skip-grant-tables", "--bind-address=127.0.0.1"]
        command += [f"--port={port}", f"--datadir={data}", f"--socket={directory}/socket"]
        command += [f"--pid-file={directory}/pid", *(["--user=root"] if tools.is_root() else [])]
        with serving(command, port, directory):
            yield port
