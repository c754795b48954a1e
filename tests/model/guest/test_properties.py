"""The table of properties, and what keys of an environment mean in it."""

import pytest

from appliance.model.guest.properties import BY_KEY, PROPERTIES, given_properties, known, misspelt

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
    assert given_properties({written: " lb-1\n"}) == {"hostname": "lb-1"}


def test_only_what_says_something_was_given():
    """Empty texts were not given, and of several the first that says something counts."""
    written = {"hostname": "  ", "lb.hostname": "one", "hostname.2": "two", "vami.gateway.x": "10.0.0.1"}
    assert given_properties(written) == {"hostname": "one"}


def test_misspelt_keys_are_told_with_what_was_meant():
    """Keys without class, or of ours, that are none of the table; those of others are theirs."""
    written = {"hostnam": "a", "lb.gatway": "b", "vami.ip0": "c", "zzz": "d", "lb.dns": "e"}
    assert list(misspelt(written)) == [
        "there is no property `hostnam`: did you mean `hostname`?",
        "there is no property `lb.gatway`: did you mean `gateway`?",
        "there is no property `zzz`",
    ]


def test_a_storm_of_misspelt_keys_is_told_in_few_lines():
    """It must not hold a start up, nor its terminal."""
    told = list(misspelt({f"lb.{'hostnam' * 9000}\n{number}": "x" for number in range(50)}))
    assert len(told) == 21
    assert "30 more names" in told[-1]
    assert all(len(each) < 200 and each.isprintable() for each in told)


@pytest.mark.parametrize("text", ['"lb-1"', " \u201clb-1\u201d\u200b", "\ufefflb\u200b-1\u00a0"])
def test_slips_of_copying_do_no_harm(text: str):
    """Quotes round a value, and what cannot be seen anywhere in it."""
    assert given_properties({"lb.hostname": text}) == {"hostname": "lb-1"}


def test_a_whole_configuration_stays_as_it_is():
    """But for what is round it."""
    assert given_properties({"config": "\ufeff a: '\u200b'\n"}) == {"config": "a: '\u200b'"}
