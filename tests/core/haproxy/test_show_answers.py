"""Answers of HAProxy's stats socket that need the configuration."""

import pytest
from support.values.snapshots import pool, server, snapshot

from appliance.core.haproxy import show_answers

pytestmark = pytest.mark.pure


def test_the_weight_of_the_configuration():
    """Of a server that there is; of others 0."""
    configured = snapshot(pools=[pool("masters", servers=[server("m0", weight=7)])])
    assert show_answers.configured_weight(configured, "masters", "m0") == 7
    assert show_answers.configured_weight(configured, "masters", "m1") == 0
    assert show_answers.configured_weight(configured, "others", "m0") == 0
