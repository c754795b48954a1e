"""The times of both versions, by the RFCs' formulas."""

import pytest

from appliance.core.vrrp.timers import down_interval, skew

pytestmark = pytest.mark.pure


def test_skew_of_version_3_is_a_part_of_the_interval():
    """RFC 9568 section 6.1: (256 - priority) * interval / 256."""
    assert skew(3, priority=192, interval=0.5) == 0.125


def test_skew_of_version_2_is_a_part_of_a_second():
    """RFC 3768 section 6.1: (256 - priority) / 256 seconds, whatever the interval."""
    assert skew(2, priority=192, interval=5.0) == 0.25


def test_down_interval_is_some_adverts_and_the_skew():
    """Three intervals and the skew time; keepalived lets the three be another number."""
    assert down_interval(3, priority=192, interval=1.0, adverts=3) == 3.25
    assert down_interval(2, priority=128, interval=2.0, adverts=2) == 4.5
