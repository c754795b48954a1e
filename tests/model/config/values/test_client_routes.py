"""Routes by client network: what they are in the configuration; what is wrong with one is in the corpus."""

import pytest

from appliance.model.config.values.client_routes import MOST_ROUTES, client_routes
from appliance.model.snapshot.frontends import ClientRoute

pytestmark = pytest.mark.pure


def test_routes_in_their_order():
    """Networks are in CIDR form, each once; both versions of IP may be in one route."""
    value = [
        {"networks": ["10.0.0.1", "::ffff:10.0.0.1/128", "2001:DB8::/32"], "pool": "p"},
        {"networks": ["0.0.0.0/0"], "pool": "q"},
    ]
    assert client_routes(value) == (
        ClientRoute(networks=("10.0.0.1/32", "2001:db8::/32"), pool="p"),
        ClientRoute(networks=("0.0.0.0/0",), pool="q"),
    )


@pytest.mark.parametrize("number", [0, MOST_ROUTES + 1])
def test_bounds(number: int):
    """A list has some routes, and not too many."""
    with pytest.raises(ValueError, match="1 to 512 routes"):
        client_routes([{"networks": ["10.0.0.0/8"], "pool": "p"}] * number)
