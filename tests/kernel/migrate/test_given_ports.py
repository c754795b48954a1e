"""Connects from ports whose connections are another node's, in the kernel."""

import errno
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
from support.network.ports import free_port

from appliance.migrate.given_ports import GivenPorts
from appliance.model.paths import Paths

pytestmark = [pytest.mark.kernel, pytest.mark.needs("nft", root=True)]

_HERE = {socket.AF_INET: "127.0.0.9", socket.AF_INET6: "::1"}
_REFUSED = {socket.AF_INET: errno.ENOPROTOOPT, socket.AF_INET6: errno.EACCES}


@pytest.fixture(params=_HERE, ids=["four", "six"])
def ends(request: pytest.FixtureRequest) -> Iterator[tuple[str, int, str, int]]:
    """Return a connection to a server that runs."""
    family, here = request.param, _HERE[request.param]
    with socket.create_server((here, 0), family=family) as server:
        yield here, server.getsockname()[1], here, free_port()


def _connect(ends: tuple[str, int, str, int]) -> int:
    """Return 0, or the errno of a connect from this address and port."""
    there, port, here, ours = ends
    with socket.socket(socket.AF_INET6 if ":" in here else socket.AF_INET) as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        made.settimeout(10)
        made.bind((here, ours))
        return made.connect_ex((there, port))


def _given(directory: Path) -> GivenPorts:
    return GivenPorts(Paths(state=directory / "state"), structlog.get_logger())


def _refused(ends: tuple[str, int, str, int]) -> int:
    return _REFUSED[socket.AF_INET6 if ":" in ends[0] else socket.AF_INET]


def test_what_is_given_is_refused_until_it_is_back(tmp_path: Path, ends: tuple[str, int, str, int]):
    """A connect from another port is not, nor is one after it has come back, or was never given."""
    given = _given(tmp_path)
    given.give([ends, ends])
    given.give([ends])
    assert _connect(ends) == _refused(ends)
    assert _connect((*ends[:3], free_port())) == 0
    given.take_back([ends, (*ends[:3], 9)])
    given.take_back([ends])
    assert _connect(ends) == 0
    given.close()


def test_it_is_refused_by_the_next_process_too(tmp_path: Path, ends: tuple[str, int, str, int]):
    """It knows it from a file, which is written only if there is news; a damaged one is set aside."""
    first = _given(tmp_path)
    first.keep()
    assert not (tmp_path / "state").exists()
    first.give([ends])
    first.close()
    assert _connect(ends) == 0
    second = _given(tmp_path)
    assert _connect(ends) == _refused(ends)
    second.close()
    (file,) = (tmp_path / "state").iterdir()
    file.write_text("[1")
    third = _given(tmp_path)
    assert _connect(ends) == 0
    third.close()
    assert [each.name for each in (tmp_path / "state").iterdir()] == ["given-ports.json.damaged"]


def test_a_file_that_cannot_be_written_costs_nothing_else(tmp_path: Path, ends: tuple[str, int, str, int]):
    """The kernel refuses it all the same."""
    (tmp_path / "state").write_text("no directory")
    given = _given(tmp_path)
    given.give([ends])
    given.keep()
    assert _connect(ends) == _refused(ends)
    given.close()
