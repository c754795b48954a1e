"""The table of properties, and what keys of an environment mean in it."""

import pytest

from appliance.model.guest.properties import BY_KEY, PROPERTIES, given, known, misspelt

pytestmark = pytest.mark.pure


def test_table_is_one_form():
    """Keys are there once and have no dot (DSP0243: it separates class and instance); texts are there."""
    assert len(BY_KEY) == len(PROPERTIES)
    assert all(key.replace("_", "").isalnum() for key in BY_KEY)
    assert all(each.label and each.description and each.longest > 0 for each in PROPERTIES)
    assert all(len(each.default) <= each.longest <= 65535 for each in PROPERTIES)


@pytest.mark.parametrize("written", ["hostname", "lb.hostname", "hostname.1", "lb.hostname.lb-1.a"])
def test_class_and_instance_do_not_matter(written: str):
    """A key may have our class before it and an instance behind."""
    assert known(written) == "hostname"
    assert given({written: " lb-1\n"}) == {"hostname": "lb-1"}


def test_only_what_says_something_was_given():
    """Empty texts were not given, and of several the first that says something counts."""
    written = {"hostname": "  ", "lb.hostname": "one", "hostname.2": "two", "vami.gateway.x": "10.0.0.1"}
    assert given(written) == {"hostname": "one"}


def test_misspelt_keys_are_told_with_what_was_meant():
    """Keys without class, or of ours, that are none of the table; those of others are theirs."""
    written = {"hostnam": "a", "lb.gatway": "b", "vami.ip0": "c", "zzz": "d", "lb.dns": "e"}
    assert list(misspelt(written)) == [("hostnam", "hostname"), ("lb.gatway", "gateway"), ("zzz", None)]
