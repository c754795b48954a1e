"""A socket in a directory of another user, after root has given its privileges up."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = [pytest.mark.kernel, pytest.mark.needs(root=True)]

_OTHER = 7  # a user and a group that nobody of the tests is
_LISTEN = """
import os, sys
from pathlib import Path
from appliance.net.control.unix_listener import listen_unix
from appliance.net.privileges import drop_privileges
from appliance.net.privileges.socket_directories import groups_to_join, objection
path = Path(sys.argv[2])
def joined(user):
    return groups_to_join([path], user) if sys.argv[3] == "joins" else ()
drop_privileges.become(sys.argv[1], owned=(), joined=joined)
try:
    listen_unix(path)
except OSError:
    sys.exit(objection(path.parent))
print(os.geteuid(), path.stat().st_uid)
"""


@pytest.fixture
def path() -> Iterator[Path]:
    """Give the path of a socket in a directory as Debian's package makes /run/haproxy."""
    root = Path(tempfile.mkdtemp(prefix="lb-", dir="/run"))
    root.chmod(0o755)
    (root / "haproxy").mkdir()
    os.chown(root / "haproxy", _OTHER, _OTHER)
    (root / "haproxy").chmod(0o2775)
    yield root / "haproxy" / "haproxy-master.sock"
    shutil.rmtree(root)


def _run(*words: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", _LISTEN, *map(str, words)], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(("name", "number"), [("root", 0), ("nobody", 65534)])
def test_its_group_is_joined_while_we_are_root(path: Path, name: str, number: int):
    """The socket is there, and belongs to the user of the programs."""
    done = _run(name, path, "joins")
    assert (done.stdout.split(), done.stderr) == ([str(number)] * 2, "")


@pytest.mark.parametrize("name", ["root", "nobody"])
def test_without_that_its_owner_is_named(path: Path, name: str):
    """Root without its privileges as well: it owns its files, and this directory is not one."""
    done = _run(name, path, "does not")
    rights = " without root's privileges" if name == "root" else ""
    assert f"{path.parent} belongs to user " in done.stderr
    assert f"and we run as user {name}{rights}: make it a member of that group" in done.stderr
