"""What this node tells the others of its own settings."""

import pytest

from appliance.core.linger.this_node import configuration, page_of
from appliance.model.snapshot.frontends import Bind
from appliance.model.snapshot.snapshot import Stats
from appliance.wire.linger_node import UNKNOWN

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("digits", "found"),
    [("0102" * 8, bytes([1, 2]) * 8), ("", UNKNOWN), ("01", UNKNOWN), ("no digits", UNKNOWN)],
)
def test_a_digest(digits: str, found: bytes):
    """What is none is unknown: `reload` may be of another release."""
    assert configuration(digits) == found


@pytest.mark.parametrize(
    ("hosts", "page"),
    [
        (["::"], "http://:9444"),
        (["127.0.0.1", "10.0.0.2"], "http://10.0.0.2:9444"),
        (["fd00::2"], "http://[fd00::2]:9444"),
        (["127.0.0.1", "::1", "lb.example.com"], ""),
    ],
)
def test_the_page(hosts: list[str], page: str):
    """It is at the first address that other machines reach."""
    first, *more = (Bind(host=each, port=9444) for each in hosts)
    assert page_of(Stats(bind=first, more_binds=tuple(more))) == page


def test_a_page_with_tls_and_none():
    """A certificate makes it https; without the section there is no page."""
    assert page_of(Stats(bind=Bind(host="0.0.0.0", port=1), certificate="/c")) == "https://:1"
    assert page_of(None) == ""
