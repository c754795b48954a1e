"""The addresses that binds stand for: which of them take the connections of others."""

import pytest

from appliance.model.snapshot.frontends import Bind
from appliance.net.listening.bind_addresses import Address, overlap

pytestmark = pytest.mark.sockets


@pytest.mark.parametrize(
    ("bind", "address", "takes"),
    [
        (Bind(host="::", port=1), Address("10.0.0.1", 1), True),
        (Bind(host="10.0.0.1", port=1), Address("0.0.0.0", 1), True),
        (Bind(host="10.0.0.1", port=1), Address("10.0.0.1", 1), True),
        (Bind(host="10.0.0.1", port=1), Address("10.0.0.2", 1), False),
        (Bind(host="::", port=2), Address("::", 1), False),
    ],
)
def test_overlap(bind: Bind, address: Address, *, takes: bool) -> None:
    """Wildcards overlap with everything of their port, addresses with themselves."""
    assert overlap(bind, address) is takes
