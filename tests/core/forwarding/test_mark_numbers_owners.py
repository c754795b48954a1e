"""Whose connections have a mark."""

import pytest

from appliance.core.forwarding.mark_numbers import MARK, Owner, Owners

pytestmark = pytest.mark.pure

A = Owner(frontend="kube-api", server="masters/a")
B = Owner(frontend="kube-api", server="masters/b")


def test_who_has_left_stays_known_until_another_one_has_the_number():
    """A mark of before our time is nobody's."""
    owners = Owners()
    owners.learn({1: A, 2: B})
    owners.learn({2: A})
    found = [owners.of_mark(MARK | number) for number in (1, 2, 3)]
    assert found == [A, A, None]
