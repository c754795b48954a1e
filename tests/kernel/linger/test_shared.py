"""Shared addresses: all nodes serve them, and a change of the router's ECMP set ends no connection."""

import os
from typing import Final

import pytest
from support.linger.linger_field import PORT
from support.linger.shared_field import SHARED, SHARED6, shared_field
from support.network.checked_streams import CheckedStreams
from support.processes.waiting import wait_until

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "nft", root=True)]

_COUNT: Final = 1000 if os.environ.get("E2E_FULL") == "1" else 40
_PERIOD: Final = 1.0 if os.environ.get("E2E_FULL") == "1" else 0.1


@pytest.mark.promise("program", "linger")
def test_a_change_of_two_nodes_ends_nothing():
    """Both serve; connections of the node that the router leaves go on there, and so on until it is back."""
    with shared_field(2) as field, CheckedStreams(field.client, port=PORT, period=_PERIOD) as streams:
        streams.connect(SHARED, _COUNT)
        streams.connect(SHARED6, _COUNT)
        before = streams.report().by
        assert set(before) == {"one", "two"}
        for names in (("one",), ("two",), ("one", "two")):
            field.route(*names)
            streams.go_on()
        assert streams.report().ended == {}
        assert streams.report().by == before
        wait_until(
            lambda: all(field.strays(name).get("asked") for name in ("one", "two")),
            what="both have asked the other",
        )
