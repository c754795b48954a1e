"""A name that one process of a network namespace can have."""

import os

import pytest

from appliance.net.netlink.namespace_claim import NamespaceClaim

pytestmark = pytest.mark.sockets


def test_the_second_does_not_get_it():
    """A name that is claimed is held by the first until that gives it back."""
    name = f"lb-test-{os.getpid()}"
    first, second = NamespaceClaim(name), NamespaceClaim(name)
    assert (first.held, second.held) == (True, False)
    first.close()
    third = NamespaceClaim(name)
    assert third.held
    for claim in (second, third):
        claim.close()
