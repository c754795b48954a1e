"""What keepalived_exporter tells of a real keepalived, our metrics tell of ours, after the same packets."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Final

import pytest
from prometheus_client.parser import text_string_to_metric_families
from support.network.namespaces import Node, Segment
from support.processes.waiting import wait_until
from support.vrrp.keepalived import Instance, Keepalived
from support.vrrp.vrrp_forger import Forger, advert
from support.vrrp.vrrp_node import VrrpNode, router

from appliance.core.metrics.keepalived import keepalived_metrics
from appliance.net.observing.observation import observe
from appliance.wire.exposition import Format, encode

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.needs("ip", "keepalived", root=True),
    pytest.mark.slow("real timers of several routers"),
]

_EXPORTED: Final = {
    "keepalived_vrrp_state": "state",
    "keepalived_gratuitous_arp_delay_total": "garp_delay",
    "keepalived_advertisements_received_total": "advert_rcvd",
    "keepalived_become_master_total": "become_master",
    "keepalived_release_master_total": "release_master",
    "keepalived_packet_length_errors_total": "packet_len_err",
    "keepalived_advertisements_interval_errors_total": "advert_interval_err",
    "keepalived_ip_ttl_errors_total": "ip_ttl_err",
    "keepalived_invalid_type_received_total": "invalid_type_rcvd",
    "keepalived_address_list_errors_total": "addr_list_err",
    "keepalived_authentication_invalid_total": "invalid_authtype",
    "keepalived_authentication_mismatch_total": "authtype_mismatch",
    "keepalived_authentication_failure_total": "auth_failure",
    "keepalived_priority_zero_received_total": "pri_zero_rcvd",
    "keepalived_priority_zero_sent_total": "pri_zero_sent",
}
"""The names that keepalived_exporter gives to the fields of keepalived's JSON (its collector/types.go)."""

_BACKUP, _MASTER = 1, 2

Told = Callable[[], Mapping[str, float]]
"""Returns what is told now, by the exporter's names."""

Run = Callable[..., AbstractContextManager[Told]]
"""Runs a router in a node, with the settings that both sides call alike, until its context ends."""


@contextmanager
def theirs(node: Node, **settings: object) -> Iterator[Told]:
    """Run a keepalived, read as the exporter reads it."""
    with Keepalived(node, Instance(name="VI", **settings)) as keepalived:
        keepalived.wait_for("MASTER")  # a signal at its start would end it

        def told() -> Mapping[str, float]:
            found = keepalived.counted()
            return {name: found[key] for name, key in _EXPORTED.items()}

        yield told


@contextmanager
def ours(node: Node, **settings: object) -> Iterator[Told]:
    """Run our vrrp, read as `/metrics` shows it."""
    with VrrpNode(node, router("VI", **settings)) as made:
        made.wait_for("active", "VI")

        def told() -> Mapping[str, float]:
            text = encode(keepalived_metrics(observe(made.paths)), Format.TEXT).decode()
            return {
                sample.name: sample.value
                for family in text_string_to_metric_families(text)
                for sample in family.samples
                if sample.name in _EXPORTED
            }

        yield told


ROUTERS = pytest.mark.parametrize("run", [theirs, ours])


def wait_for(told: Told, **values: float) -> None:
    """Wait until exactly these figures are not 0, of those that events decide about."""
    wanted = {f"keepalived_{name}": value for name, value in values.items()}

    def counted() -> dict[str, float]:
        return {name: value for name, value in told().items() if value}

    wait_until(lambda: counted() == wanted, what=f"exactly these are told: {wanted}", timeout=30.0)


@ROUTERS
def test_the_same_is_counted_of_the_same_packets(run: Run):
    """A better router comes, sends what is wrong in one way each, and leaves: state and all counters."""
    with Segment() as segment:
        node, other = segment.node("one"), segment.node("other")
        source = other.address

        def packet(**changes: object) -> bytes:
            # An interval of ten seconds: whoever hears it waits for thirty, however slow this machine is.
            return advert(source=source, **{"interval": 1000, **changes})

        with run(node, priority=250) as told, Forger(other) as forger:
            before = {"gratuitous_arp_delay_total": 5, "become_master_total": 1}
            wait_for(told, **before, vrrp_state=_MASTER)
            forger.send(packet(), source=source)
            after = {**before, "release_master_total": 1, "vrrp_state": _BACKUP}
            wait_for(told, **after, advertisements_received_total=1)
            for body, ttl in (
                (packet(), 64),
                (packet(kind=2), 255),
                (packet()[:-2], 255),
                (packet() + b"xyz", 255),
                (packet(version=2), 255),
                (packet(router_id=43), 255),
                (packet(), 255),
            ):
                forger.send(body, source=source, ttl=ttl)
            errors = {
                "ip_ttl_errors_total": 1,
                "invalid_type_received_total": 1,
                "packet_length_errors_total": 2,
            }
            if run is ours:  # it looks at what a packet of version 2 would be, and misses its password
                errors["authentication_mismatch_total"] = 1
            wait_for(told, **after, **errors, advertisements_received_total=2)
            forger.send(packet(priority=0), source=source)
            after |= {"become_master_total": 2, "priority_zero_received_total": 1, "vrrp_state": _MASTER}
            wait_for(told, **after, **errors, advertisements_received_total=3)


@ROUTERS
def test_the_same_is_counted_of_wrong_passwords(run: Run):
    """VRRPv2: one without a password, and one with another; who is active meanwhile does not matter."""
    with Segment() as segment:
        node, other = segment.node("one"), segment.node("other")
        source = other.address
        settings = {"version": 2, "advert": 1.0, "password": "secret"}
        with run(node, **settings) as told, Forger(other) as forger:
            for password, count in ((b"", 2), (b"wrong", 3)):
                body = advert(source=source, version=2, interval=1, password=password)
                for _ in range(count):
                    forger.send(body, source=source)
            wanted = {
                "keepalived_authentication_mismatch_total": 2,
                "keepalived_authentication_failure_total": 3,
                "keepalived_authentication_invalid_total": 0,
                "keepalived_advertisements_received_total": 0,
                "keepalived_release_master_total": 0,
            }
            wait_until(lambda: wanted.items() <= dict(told()).items(), what=f"told: {wanted}", timeout=30.0)
