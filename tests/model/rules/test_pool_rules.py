"""Rules for pools cost what their servers cost."""

import json

import pytest

from appliance.model.config.pools import PoolSection
from appliance.model.loading.loading import load

pytestmark = pytest.mark.pure


def test_servers_are_looked_at_once_and_not_for_each_other(monkeypatch: pytest.MonkeyPatch):
    """Ten times as many servers do not have all of them looked at ten times as often."""
    asked: list[int] = []
    usable = PoolSection.usable.fget
    assert usable is not None

    def counted(pool: PoolSection) -> object:
        asked.append(len(pool.servers.by_name))
        return usable(pool)

    monkeypatch.setattr(PoolSection, "usable", property(counted))
    for count in (3, 30):
        servers = {f"s{number}": {"address": f"10.0.0.{number}:443"} for number in range(1, count + 1)}
        text = json.dumps(
            {
                "api": {"frontends": {"a": {"bind": ["[::]:1"], "pool": "p"}}},
                "pools": {"p": {"servers": servers}},
            }
        )
        assert load(text, source="a.yaml", number=1).snapshot is not None
    assert asked.count(3) == asked.count(30)
