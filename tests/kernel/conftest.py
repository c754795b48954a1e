"""What the kernel tests of virtual IPs and redirects stand on."""

from collections.abc import Iterator

import pytest
from support.forward.forward_field import ForwardField, forward_field
from support.forward.forward_pair import ForwardPair
from support.forward.forward_pair import forward_pair as two_balancers
from support.redirect.redirect_field import RedirectField, redirect_field
from support.vrrp.vrrp_field import Field
from support.vrrp.vrrp_field import field as vrrp_field


@pytest.fixture
def ground() -> Iterator[Field]:
    """Two nodes, a client and a capture on a segment of their own."""
    with vrrp_field() as made:
        yield made


@pytest.fixture
def balanced() -> Iterator[ForwardField]:
    """A balancer, a client and three servers."""
    with forward_field() as made:
        yield made


@pytest.fixture
def forward_pair() -> Iterator[ForwardPair]:
    """Two balancers with virtual IPs, a client and two servers."""
    with two_balancers() as made:
        yield made


@pytest.fixture
def field() -> Iterator[RedirectField]:
    """A master, its API server, and a client."""
    with redirect_field() as made:
        yield made
