"""Entries of a snapshot's tree, and the keys of the file that may have said them."""

import pytest

from appliance.model.snapshot.diff import operators_keys

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("path", "keys"),
    [
        ("cluster", ["cluster.name"]),
        ("drain", ["defaults.drain"]),
        ("readers", ["group"]),
        ("log.level", ["log.level"]),
        ("groups", [""]),
        ("groups.api.workers", ["api.workers"]),
        ("groups.api.frontends.a", ["api.frontends.a", "defaults"]),
        ("groups.api.frontends.a.binds", ["api.frontends.a.bind"]),
        ("groups.api.frontends.a.redirect.sources", ["api.frontends.a.redirect.from"]),
        (
            "groups.api.frontends.a.timeout_client",
            ["api.frontends.a.timeouts.client", "defaults.timeouts.client"],
        ),
        (
            "groups.api.frontends.a.keepalive.idle",
            ["api.frontends.a.keepalive.idle", "defaults.keepalive.idle"],
        ),
        ("pools.p.retries", ["pools.p.retries", "defaults.retries"]),
        ("pools.p.timeout_queue", ["pools.p.timeouts.queue", "defaults.timeouts.queue"]),
        ("pools.p.servers.s.host", ["pools.p.servers.s.address"]),
        ("pools.p.servers.s.weight", ["pools.p.servers.s.weight"]),
        ("pools.p.servers.s.check.path", ["pools.p.servers.s.check.path", "pools.p.check.path"]),
        ("pools.p.discover.source.kind", ["pools.p.servers.discover"]),
        ("virtual_routers", ["virtual_ips"]),
        ("virtual_routers.api", ["virtual_ips.api"]),
        ("virtual_routers.api.priority", ["virtual_ips.api.priority"]),
        ("virtual_routers.api.password", ["virtual_ips.api.auth.pass"]),
        (
            "virtual_routers.a-v6.hmac.send",
            ["virtual_ips.a-v6.auth.hmac.send", "virtual_ips.a.auth.hmac.send"],
        ),
        ("stats.password_file", ["stats.auth.password_file"]),
        ("stats.bind.port", ["stats.bind.port"]),
        ("stats", ["stats"]),
    ],
)
def test_keys(path: str, keys: list[str]):
    """The most specific one comes first."""
    assert [".".join(each) for each in operators_keys(tuple(path.split(".")))] == keys
