"""Which bind takes what is redirected."""

import pytest

from appliance.model.snapshot.frontends import Bind, takes, target

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("host", "families"),
    [
        ("::", {4, 6}),
        ("0.0.0.0", {4}),
        ("10.0.0.34", {4}),
        ("fd00::1", {6}),
        ("127.0.0.1", set()),
        ("::1", set()),
        ("localhost", set()),
    ],
)
def test_a_bind_takes_its_families(host: str, families: set[int]):
    """Every address does, one of its family does, a loopback address and a name do not."""
    assert {each for each in (4, 6) if takes(Bind(host=host, port=1), each)} == families


def test_the_first_that_takes_it():
    """In the order of the file."""
    binds = [Bind(host=each, port=9445) for each in ("127.0.0.1", "fd00::1", "10.0.0.34", "0.0.0.0")]
    assert target(binds, 4) == binds[2]
    assert target(binds, 6) == binds[1]
    assert target(binds[:1], 4) is None
