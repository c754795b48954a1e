"""What would be better than what a file says, apart from the translation."""

import pytest
from support.translation.haproxy_files import TIMES, Read, backend, read

from appliance.model.document.document import read as yaml

pytestmark = pytest.mark.pure

GOOD = ("timeout tunnel 24h", "option httpchk GET /readyz")
SERVER = "server m 10.0.0.1:6443 check check-ssl verify none on-marked-down shutdown-sessions"


def listen(port: int, *lines: str, server: str = "check on-marked-down shutdown-sessions") -> Read:
    """Return what a `listen` becomes whose servers have a port."""
    body = "".join(f"  {each}\n" for each in lines)
    return read(f"{TIMES}listen l\n  bind *:{port}\n{body}  server s 10.0.0.1:{port} {server}\n")


def test_nothing_to_propose():
    """A file that is as OpenShift wants it."""
    assert backend(*GOOD, server=SERVER).proposals == []


@pytest.mark.parametrize(
    ("lines", "server", "expected"),
    [
        (["timeout tunnel 24h"], SERVER, ["readyz"]),
        (["timeout tunnel 24h", "option httpchk GET /healthz"], SERVER, ["readyz"]),
        (["option httpchk GET /readyz"], SERVER, ["short-timeouts"]),
        ([*GOOD, "balance source"], SERVER, ["api-persistence"]),
        ([*GOOD, "balance leastconn"], SERVER, []),
        (list(GOOD), f"{SERVER} maxconn 250", ["copied-limit"]),
        (list(GOOD), f"{SERVER} maxconn 2500", []),
        (list(GOOD), "server m 10.0.0.1:6443 check", ["on-down"]),
        (list(GOOD), "server m 10.0.0.1:6443", []),
        (list(GOOD), SERVER.replace(" m ", " Bootstrap-0 "), ["bootstrap-server"]),
    ],
)
def test_proposals(lines: list[str], server: str, expected: list[str]):
    """Each has its name, and a place in the file."""
    found = backend(*lines, server=server)
    assert found.proposals == expected
    assert all(each.place and each.place.line > 1 for each in found.found.proposals)


def test_routers():
    """Port 1936 tells more than the ports that they serve; a check that asks already is left alone."""
    assert listen(443).proposals == ["router-ready"]
    assert listen(443, "option httpchk GET /healthz/ready").proposals == []
    assert listen(443, server="check port 1936 on-marked-down shutdown-sessions").proposals == []


def test_machine_configuration():
    """It hands out secrets: somebody has to say to whom."""
    assert listen(22623).proposals == ["machine-config-allow"]
    assert listen(22623, "tcp-request connection reject unless { src 10.0.0.0/8 }").proposals == []


def test_examples_are_yaml():
    """What could be written instead can be read."""
    for found in (
        backend(server="server bootstrap 10.0.0.1:6443 check maxconn 9"),
        listen(443),
        listen(22623),
    ):
        for each in found.found.proposals:
            assert each.example is None or yaml(each.example).value
