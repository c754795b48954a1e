"""Directories of other users in which a socket of ours is to be: whose they are, and the ways in."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import gevent
import pytest
import structlog

from appliance.model.paths import Paths
from appliance.net.control.kept_listener import KeptListener
from appliance.net.privileges.socket_directories import groups_to_join, objection
from appliance.reload.boot import wanted_sockets

pytestmark = [pytest.mark.sockets, pytest.mark.needs(root=True)]

_NOBODY = 65534  # and its group, nogroup
_DAEMON = 1


@pytest.fixture
def place() -> Iterator[Path]:
    """Give a directory of another user, as Debian's package makes /run/haproxy, on a way that is root's."""
    root = Path(tempfile.mkdtemp(prefix="lb-", dir="/run"))
    root.chmod(0o755)
    made = root / "haproxy"
    made.mkdir()
    os.chown(made, _NOBODY, _NOBODY)
    made.chmod(0o2775)
    yield made
    shutil.rmtree(root)


@pytest.fixture
def closed(place: Path) -> Iterator[Path]:
    """Give it while we are an ordinary user, of no other group."""
    groups = os.getgroups()
    os.setgroups([])
    os.setegid(_DAEMON)
    os.seteuid(_DAEMON)
    yield place
    os.seteuid(0)
    os.setegid(0)
    os.setgroups(groups)


def test_a_directory_of_another_user_is_named(closed: Path):
    """Whose it is, as whom we run, and two ways out, of which the first fits its mode."""
    whose = f"{closed} belongs to user nobody and group nogroup, mode "
    group = "make it a member of that group (`usermod --append --groups nogroup daemon`) and start again"
    alone = f"let it write there (`setfacl --modify u:daemon:rwx {closed}`)"
    other = "or name a path in a directory of its own"
    assert objection(closed) == f"{whose}2775, and we run as user daemon: {group}, {other}"
    os.seteuid(0)
    closed.chmod(0o755)
    os.seteuid(_DAEMON)
    assert objection(closed) == f"{whose}0755, and we run as user daemon: {alone}, {other}"


def test_what_is_no_matter_of_rights_is_not_told_as_one(closed: Path):
    """A directory that is not there, and one where we may write."""
    assert objection(closed / "none") is None
    assert objection(Path("/tmp")) is None  # noqa: S108  # one where everybody may


def test_a_socket_says_it(closed: Path):
    """No number of an error, and nothing of what is to be removed, where nothing is."""
    path = closed / "haproxy-master.sock"
    listener = KeptListener(path, lambda _: None, structlog.get_logger(), name="reload-socket")
    assert listener.failure == objection(closed)
    os.seteuid(0)
    listener.keep()
    assert listener.failure == ""
    listener.close()


def test_another_trouble_is_told_in_words(place: Path):
    """Without the path, that stands before it anyway."""
    path = place / "none" / "haproxy-master.sock"
    listener = KeptListener(path, lambda _: None, structlog.get_logger(), name="reload-socket")
    assert listener.failure == "No such file or directory"
    listener.close()
    gevent.sleep(0)


def test_root_joins_a_group_that_may_write(place: Path):
    """Before it gives its privileges up; for who owns the directory there is nothing to join."""
    sockets = [place / "a.sock", place / "b.sock"]
    assert groups_to_join(sockets, _DAEMON) == {_NOBODY}
    assert groups_to_join(sockets, _NOBODY) == frozenset()


def test_no_group_that_others_chose_is_joined(place: Path):
    """A link, a directory below somebody else's, one that the group may not write to, root's, or none."""
    (place.parent / "link").symlink_to(place)
    below = place / "below"
    below.mkdir(mode=0o775)
    for path in (place.parent / "link", below, place / "none"):
        assert groups_to_join([path / "a.sock"], _DAEMON) == frozenset(), path
    place.chmod(0o755)
    assert groups_to_join([place / "a.sock"], _DAEMON) == frozenset()
    os.chown(place, _NOBODY, 0)
    place.chmod(0o2775)
    assert groups_to_join([place / "a.sock"], _DAEMON) == frozenset()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("reload: { sockets: [/run/haproxy/a.sock, 7, relative] }", ["/x", "/run/haproxy/a.sock"]),
        ("stats: { socket: /run/haproxy/b.sock }", ["/x", "/run/haproxy/b.sock"]),
        ("reload: socket\nstats: [socket]", ["/x"]),
        ("reload: {", ["/x"]),
        ("pools: {}", ["/x"]),
    ],
)
def test_sockets_are_known_before_the_file_is_judged(tmp_path: Path, text: str, found: list[str]):
    """Of the command line and of the file, whatever else is wrong there."""
    paths = Paths(config=tmp_path / "c.yaml", reload_sockets=(Path("/x"),))
    paths.config.write_text(text)
    assert [*map(str, wanted_sockets(paths))] == found
