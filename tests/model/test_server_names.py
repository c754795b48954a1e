"""Discovered servers have the names of their Nodes, as far as those are names of ours."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.model.config.values.names import name
from appliance.model.server_names import server_name

pytestmark = pytest.mark.pure


def test_names():
    """Short ones as they are, long ones with digits that tell them apart."""
    long = "a" * 70
    assert server_name("master-0.ocp4.example.com") == "master-0.ocp4.example.com"
    assert len(server_name(long)) == 63
    assert server_name(long + "b") != server_name(long + "c")
    assert server_name("fe80::1") == "fe80--1"


@given(st.text(max_size=300))
def test_every_name_is_one_of_ours(text: str):
    """Whatever the API says."""
    assert name(server_name(text)) == server_name(text)
