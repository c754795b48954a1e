"""A bad answer of a Kubernetes API server names the checks that failed; any other answer names none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.wire.http.failed_checks import failed_checks

pytestmark = pytest.mark.pure

HEAD = b"HTTP/1.0 500 Internal Server Error\r\n\r\n"
READYZ = b"[+]ping ok\n[-]etcd failed: reason withheld\n[+]log ok\n[-]shutdown failed: reason withheld\n"


@pytest.mark.parametrize(
    ("body", "names"),
    [
        (READYZ + b"readyz check failed", ("etcd", "shutdown")),
        (b"[-]poststarthook/start-x failed: not finished\n", ("poststarthook/start-x",)),
        (b"[-]etc", ()),
        (b"[-]\xff failed\n", ("\ufffd",)),
        (b"[-]a\x1b[2J failed\n", ("a\ufffd[2J",)),
        (b"".join(b"[-]c%d failed\n" % number for number in range(9)), ("c0", "c1", "c2", "c3", "c4")),
        (b"<html>no</html>", ()),
        (b"", ()),
    ],
)
def test_names(body: bytes, names: tuple[str, ...]):
    """Those with a minus, the first few, in letters that a terminal shows."""
    assert failed_checks(HEAD + body, "GET") == names


def test_an_answer_to_head_has_no_body():
    """What follows its head is not one."""
    assert failed_checks(HEAD + READYZ, "HEAD") == ()


def test_an_answer_that_breaks_the_protocol():
    """It names nothing; the check has its result already."""
    broken = b"HTTP/1.1 500 -\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n[-]etcd\n"
    assert failed_checks(broken, "GET") == ()


@given(st.binary(max_size=300))
def test_any_bytes(data: bytes):
    """However an answer goes on, at most a few short names come out of it."""
    found = failed_checks(HEAD + data, "GET")
    assert len(found) <= 5
    assert all(each.isprintable() for each in found)
