"""The name by which the configuration, the page and `fleet` know this node."""

import socket

import pytest

from appliance.model.paths import NODE_VARIABLE
from appliance.net.process.this_node import this_node

pytestmark = pytest.mark.sockets


def test_the_variable_wins_over_the_host_s_name(monkeypatch: pytest.MonkeyPatch):
    """As containers of one host have the same."""
    monkeypatch.delenv(NODE_VARIABLE, raising=False)
    assert this_node() == socket.gethostname()
    monkeypatch.setenv(NODE_VARIABLE, "lb-0")
    assert this_node() == "lb-0"
