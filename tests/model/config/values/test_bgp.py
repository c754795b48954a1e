"""Values of BGP that the corpus of files does not have."""

import pytest

from appliance.model.config.values import bgp

pytestmark = pytest.mark.pure


def test_a_shared_address_is_one_host():
    """A prefix of a network is refused with what would be right, an address without one, too."""
    assert bgp.shared_address("2001:DB8::10/128") == "2001:db8::10/128"
    with pytest.raises(ValueError, match=r"as one host, `198\.51\.100\.10/32`"):
        bgp.shared_address("198.51.100.10/24")


def test_router_ids():
    """`auto` is none; an IPv4 address is itself; everything else is refused."""
    assert bgp.router_id("auto") is None
    assert bgp.router_id("10.0.0.11") == "10.0.0.11"
    with pytest.raises(ValueError, match="an IPv4 address"):
        bgp.router_id(7)


def test_passwords():
    """A file by its path, or the text itself; a message never has it."""
    assert bgp.password("file:/etc/bgp.pass") == "file:/etc/bgp.pass"
    assert bgp.password("s3cret") == "s3cret"
    with pytest.raises(ValueError, match="1 to 80 visible") as caught:
        bgp.password('qu"ote')
    assert "ote" not in str(caught.value).replace("quote", "")
