"""Which virtual IPs move with the connections of `sync: true`, and who waits for them."""

import pytest

from appliance.model.loading.loading import load
from appliance.model.snapshot.snapshot import Snapshot
from appliance.model.snapshot.sync import are_proxied, covers, synced_addresses, synced_routers

pytestmark = pytest.mark.pure

FILE = """
api:
  frontends:
    synced: {{ bind: {bind}, pool: p, forward: kernel, sync: true }}
    plain: {{ bind: ["10.0.0.203:9447"], pool: p, forward: kernel }}
    proxied: {{ bind: {proxied}, pool: p }}
pools: {{ p: {{ servers: {{ s: {{ address: "10.0.0.34:6443" }} }} }} }}
virtual_ips:
  z: {{ addresses: [10.0.0.201/24], interface: eth0, router_id: 1 }}
  a: {{ addresses: [10.0.0.202/24], interface: eth0, router_id: 2 }}
  b: {{ addresses: ["2001:db8::201/64"], interface: eth0, router_id: 3 }}
  c: {{ addresses: [10.0.0.203/24], interface: eth0, router_id: 4 }}
"""


def loaded(*binds: str, proxied: str = "10.0.0.9:99") -> Snapshot:
    """Return the snapshot with these binds of the synced frontend."""
    text = FILE.format(bind=list(binds), proxied=[proxied])
    found = load(text, source="appliance.yaml", number=1)
    assert found.snapshot is not None, found.problems
    return found.snapshot


def test_virtual_ips_are_those_that_lead_to_the_frontends():
    """By address, or all that `[::]` and `0.0.0.0` accept; IPv4 first, which the nodes then talk over."""
    one = loaded("10.0.0.201:80", "[2001:db8::201]:80")
    assert synced_addresses(one) == ("10.0.0.201", "2001:db8::201")
    assert [each.name for each in synced_routers(one)] == ["z", "b"]
    assert [each.name for each in synced_routers(loaded("0.0.0.0:80"))] == ["a", "c", "z"]
    assert [each.name for each in synced_routers(loaded("[::]:80"))] == ["a", "c", "z", "b"]


def test_their_routers_wait_for_forward():
    """A returning node takes none of them over before it has the connections; others do not wait."""
    waiting = {
        each.name: (each.informers, each.informed_within) for each in loaded("10.0.0.201:80").virtual_routers
    }
    assert waiting == {"z": (("forward",), 60.0), "a": ((), 0.0), "b": ((), 0.0), "c": ((), 0.0)}


@pytest.mark.parametrize(
    ("proxied", "is_shared"), [("10.0.0.201:81", True), ("[::]:81", True), ("10.0.0.202:81", False)]
)
def test_proxies_may_listen_there_too(proxied: str, *, is_shared: bool):
    """Then conntrackd itself has to tell their connections apart."""
    found = loaded("10.0.0.201:80", proxied=proxied)
    assert are_proxied(found, synced_addresses(found)) is is_shared


def test_a_name_may_be_any_address():
    """Only a proxy binds one."""
    assert covers("localhost", "10.0.0.201")
    assert not covers("0.0.0.0", "2001:db8::1")  # not bound
    assert covers("2001:db8:0::1", "2001:db8::1")
