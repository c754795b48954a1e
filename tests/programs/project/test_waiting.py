"""What waits of tests and the claims of their layers stand on."""

import os
import socket
import subprocess
from collections.abc import Iterator

import pytest
from support.processes.waiting import Late, processor_share, wait_until
from support.run.claims import BrokenClaimError, Claims

pytestmark = pytest.mark.pure


@pytest.fixture
def claims() -> Iterator[Claims]:
    """Give claims that end with the test."""
    made = Claims()
    yield made
    made.hold("image")


@pytest.mark.parametrize(
    ("running", "share"), [(0, 1.0), (1, 1.0), (2, 1.0), (3, 2 / 3), (4, 0.5), (200, 0.01)]
)
def test_a_second_counts_for_less_where_processors_are_shared(running: int, share: float):
    """With two processors, four that want to run get half of one each."""
    assert processor_share(f"0.50 0.40 0.30 {running}/321 4711\n", 2) == share


def test_what_never_happens_is_named():
    """A wait ends, and its error says what was waited for and what was seen last."""
    with pytest.raises(Late, match=r"still not: it is there \(last seen: 0\)"):
        wait_until(lambda: 0, what="it is there", timeout=0.05, pause=0.01)


@pytest.mark.parametrize("layer", ["pure", "sockets"])
def test_a_process_breaks_the_claim(claims: Claims, layer: str):
    """Both ways to a process are refused, and the layer is named."""
    claims.hold(layer)
    with pytest.raises(BrokenClaimError, match=f"`{layer}` calls fork"):
        os.fork()
    with pytest.raises(BrokenClaimError, match=f"`{layer}` calls Popen"):
        subprocess.run(["true"], check=True)


@pytest.mark.sockets
def test_a_socket_breaks_the_claim_of_pure_only(claims: Claims):
    """The layer `sockets` is named after what it may use."""
    claims.hold("pure")
    with pytest.raises(BrokenClaimError, match="`pure` calls socket"):
        socket.socket()
    claims.hold("sockets")
    socket.socket().close()
