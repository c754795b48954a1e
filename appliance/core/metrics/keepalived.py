"""The metrics of keepalived_exporter, from the status of the program `vrrp`: same names, labels and numbers.

That exporter has a counter for each kind of packet error; ours are sums of the reasons for which packets were
dropped. As in keepalived, another version has no counter here: `appliance_vrrp_drops` has all reasons.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from appliance.core.status.observations import Observations
from appliance.model.drop_reasons import DropReason
from appliance.wire.exposition import Metric, MetricKind, Sample, labels
from appliance.wire.lines.vrrp_status import RouterStatus, VrrpStatus

_STATES: Final = {"initialize": 0, "backup": 1, "active": 2, "fault": 3}
_COUNTERS: Final[Mapping[str, tuple[str, str]]] = {
    "advertisements_received": ("adverts_received", "Received advertisements."),
    "advertisements_sent": ("adverts_sent", "Sent advertisements."),
    "priority_zero_received": ("priority_zero_received", "Received advertisements with priority 0."),
    "priority_zero_sent": ("priority_zero_sent", "Sent advertisements with priority 0."),
    "become_master": ("became_active", "Transitions of this node to active."),
    "release_master": ("left_active", "Transitions of this node out of active."),
    "gratuitous_arp_sent": ("gratuitous_sent", "Sent gratuitous ARP and neighbour advertisements."),
}
_DROPS: Final[Mapping[str, tuple[str, tuple[DropReason, ...]]]] = {
    "packet_length_errors": ("a wrong length", (DropReason.TRUNCATED, DropReason.TRAILING)),
    "advertisements_interval_errors": ("a different interval", (DropReason.INTERVAL,)),
    "ip_ttl_errors": ("a TTL other than 255", (DropReason.HOP_LIMIT,)),
    "invalid_type_received": ("an invalid type", (DropReason.TYPE,)),
    "address_list_errors": (
        "a different list of addresses",
        (DropReason.ADDRESS_LIST, DropReason.ADDRESS_COUNT),
    ),
    "authentication_invalid": ("an unknown authentication", (DropReason.HMAC_TYPE, DropReason.HMAC_KEY)),
    "authentication_mismatch": (
        "a different kind of authentication",
        (DropReason.AUTH_TYPE, DropReason.HMAC_MISSING, DropReason.HMAC_UNEXPECTED),
    ),
    "authentication_failure": (
        "a wrong password or signature",
        (DropReason.PASSWORD, DropReason.HMAC_DIGEST, DropReason.HMAC_TIME, DropReason.HMAC_REPLAY),
    ),
}


def keepalived_metrics(observations: Observations) -> Iterator[Metric]:
    """Yield the metrics, none without virtual IPs; counters are the board's, so go on after a restart."""
    vrrp, board, snapshot = observations.answer(VrrpStatus), observations.vrrp_board, observations.snapshot
    if isinstance(snapshot, str) or not snapshot.virtual_routers:
        return
    about = "1 if the program vrrp answers."
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
    records = {each.name: each for each in board.routers} if board else {}
    counted = [(_labels(each), records[each.name]) for each in routers if each.name in records]
    for name, (field, about) in _COUNTERS.items():
        yield _counter(name, about, [(named, getattr(record, field)) for named, record in counted])
    for name, (what, reasons) in _DROPS.items():
        samples = [(named, sum(record.drops.get(each, 0) for each in reasons)) for named, record in counted]
        yield _counter(name, f"Packets that were dropped because of {what}.", samples)
    delays = {each.name: each.announce.delay for each in snapshot.virtual_routers}
    about = "Seconds to the second series of gratuitous ARP (garp_master_delay); counter in name only."
    delayed = [(_labels(each), delays[each.name]) for each in routers if each.name in delays]
    yield _counter("gratuitous_arp_delay", about, delayed)
    yield _scripts(routers)


def _scripts(routers: Sequence[RouterStatus]) -> Metric:
    """Return the results of tracks, keepalived's scripts: 1 if good; one router is enough to make it bad."""
    good: dict[str, bool] = {}
    for part in (part for each in routers for part in each.parts if part.up is not None):
        good[part.track] = good.get(part.track, True) and bool(part.up)
    return Metric(
        name="keepalived_script_status",
        kind=MetricKind.GAUGE,
        help="Result of a track: 1 good, 0 bad.",
        samples=[(labels(name=name), int(each)) for name, each in good.items()],
    )


def _labels(router: RouterStatus, **more: str) -> str:
    return labels(iname=router.name, intf=router.interface, vrid=str(router.router_id), **more)


def _counter(name: str, about: str, samples: Sequence[Sample]) -> Metric:
    return Metric(name=f"keepalived_{name}_total", kind=MetricKind.COUNTER, help=about, samples=samples)
