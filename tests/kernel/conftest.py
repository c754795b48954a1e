"""What the kernel tests of virtual IPs stand on."""

from collections.abc import Iterator

import pytest
from support.programs.vrrp_field import Field, field


@pytest.fixture
def ground() -> Iterator[Field]:
    """Two nodes, a client and a capture on a segment of their own."""
    with field() as made:
        yield made
