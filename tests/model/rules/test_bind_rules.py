"""How many addresses the workers of a group listen on."""

import json

import pytest

from appliance.model.loading.loading import load
from appliance.model.rules import bind_rules
from appliance.model.rules.bind_rules import MOST_BINDS

pytestmark = pytest.mark.pure


def said(binds: int, **more: object) -> list[str]:
    """Return the errors about a group of so many addresses, in two frontends."""
    ports = [f"10.0.0.{1 + number // 60_000}:{1 + number % 60_000}" for number in range(binds)]
    frontends = {"a": {"bind": ports[:1], "pool": "p"}, "b": {"bind": ports[1:], "pool": "p", **more}}
    pools = {"p": {"servers": {"s": {"address": "192.0.2.1:443"}}}}
    text = json.dumps({"api": {"frontends": frontends}, "pools": pools})
    return [str(each) for each in load(text, source="a.yaml", number=1).errors]


def test_more_binds_than_a_worker_can_be_given_are_an_error():
    """It names the group and the limit; a worker could not be started."""
    assert said(MOST_BINDS) == []
    (error,) = said(MOST_BINDS + 1)
    assert "api.frontends: 5001 binds: the workers of a group take at most 5000" in error


def test_what_the_kernel_forwards_is_given_to_no_worker(monkeypatch: pytest.MonkeyPatch):
    """Those addresses are not counted."""
    monkeypatch.setattr(bind_rules, "MOST_BINDS", 1)
    assert said(3, forward="kernel") == []
