"""A health program, and a server that it checks."""

from collections.abc import Iterator

import pytest
from support.health.health import Health
from support.peers.backend import Backend


@pytest.fixture
def health() -> Iterator[Health]:
    """Give a runtime directory; at the end the program is ended."""
    with Health() as made:
        yield made


@pytest.fixture
def backend() -> Iterator[Backend]:
    """Give a server whose /readyz can be steered."""
    with Backend("master-0") as made:
        yield made
