"""The metrics of keepalived_exporter, from what the program `vrrp` tells: same names, labels and numbers.

Where that exporter has a counter for each thing that can be wrong with a packet, ours are the sums of the
reasons for which packets were dropped.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from appliance.model.drop_reasons import DropReason
from appliance.wire.exposition import Metric, MetricKind, Sample, labels
from appliance.wire.lines.vrrp_status import RouterStatus, VrrpStatus

_STATES: Final = {"initialize": 0, "backup": 1, "active": 2, "fault": 3}
_COUNTERS: Final[Mapping[str, tuple[str, str]]] = {
    "advertisements_received": ("adverts_received", "Advertisements that were received."),
    "advertisements_sent": ("adverts_sent", "Advertisements that were sent."),
    "priority_zero_received": ("priority_zero_received", "Advertisements of priority 0 that were received."),
    "priority_zero_sent": ("priority_zero_sent", "Advertisements of priority 0 that were sent."),
    "become_master": ("became_active", "How often this node became active."),
    "release_master": ("left_active", "How often this node ceased to be active."),
    "gratuitous_arp_sent": ("gratuitous_sent", "Gratuitous ARP and neighbour advertisements sent."),
}
_DROPS: Final[Mapping[str, tuple[str, tuple[DropReason, ...]]]] = {
    "packet_length_errors": ("a wrong length", (DropReason.TRUNCATED, DropReason.TRAILING)),
    "advertisements_interval_errors": ("another interval", (DropReason.INTERVAL,)),
    "ip_ttl_errors": ("a TTL other than 255", (DropReason.HOP_LIMIT,)),
    "invalid_type_received": ("an invalid type or version", (DropReason.TYPE, DropReason.VERSION)),
    "address_list_errors": ("another list of addresses", (DropReason.ADDRESS_LIST, DropReason.ADDRESS_COUNT)),
    "authentication_invalid": ("an unknown authentication", (DropReason.HMAC_TYPE, DropReason.HMAC_KEY)),
    "authentication_mismatch": (
        "another kind of authentication",
        (DropReason.AUTH_TYPE, DropReason.HMAC_MISSING, DropReason.HMAC_UNEXPECTED),
    ),
    "authentication_failure": (
        "a wrong password or signature",
        (DropReason.PASSWORD, DropReason.HMAC_DIGEST, DropReason.HMAC_TIME, DropReason.HMAC_REPLAY),
    ),
}


def keepalived_metrics(vrrp: VrrpStatus | None, *, expected: bool) -> Iterator[Metric]:
    """Yield the metrics; `expected` is whether the configuration has virtual IPs, of which `vrrp` None is."""
    if not expected:
        return
    about = "Whether the program vrrp answers."
    yield Metric(
        name="keepalived_up", kind=MetricKind.GAUGE, help=about, samples=[("", int(vrrp is not None))]
    )
    routers = vrrp.routers if vrrp else ()
    yield Metric(
        name="keepalived_vrrp_state",
        kind=MetricKind.GAUGE,
        help="State of a virtual router: 0 init, 1 backup, 2 active (MASTER), 3 fault.",
        samples=[
            (_labels(each, ip_address=address), _STATES.get(each.state, 0))
            for each in routers
            for address in each.addresses
        ],
    )
    for name, (key, about) in _COUNTERS.items():
        yield _counter(name, about, [(_labels(each), each.counters.get(key, 0)) for each in routers])
    for name, (what, reasons) in _DROPS.items():
        samples = [(_labels(each), sum(each.drops.get(reason, 0) for reason in reasons)) for each in routers]
        yield _counter(name, f"Packets that were dropped for {what}.", samples)


def _labels(router: RouterStatus, **more: str) -> str:
    return labels(iname=router.name, intf=router.interface, vrid=str(router.router_id), **more)


def _counter(name: str, about: str, samples: Sequence[Sample]) -> Metric:
    return Metric(name=f"keepalived_{name}_total", kind=MetricKind.COUNTER, help=about, samples=samples)
