"""Rules for the section `linger`: which virtual IPs can move with their connections."""

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Final

from appliance.model.config.configuration import Config
from appliance.model.messages.problems import Finding
from appliance.model.rules.findings import error, warning

MOST: Final = {4: 64, 6: 40}
"""Addresses of one family, shared ones or on one interface, in one report (wire.linger_report)."""

MOST_PEERS: Final = 15
"""Nodes that a report can answer (wire.linger_report.MOST_ANSWERED)."""


def findings(config: Config) -> Iterator[Finding]:
    """Yield what `linger` cannot do."""
    if config.linger is None:
        return
    if not config.virtual_ips and not config.shared_ips:
        yield warning(("linger",), "does nothing: there are no `virtual_ips`")
    for name, each in config.virtual_ips.items():
        for address, interface in each.elsewhere:
            message = (
                f"connections of {address}, on `{interface}`, end when it moves: no node forwards their "
                "packets there"
            )
            yield warning(("virtual_ips", name, "addresses"), message, ("linger",))
    counts: Counter[tuple[str, int]] = Counter()
    for each in config.virtual_ips.values():
        for family in each.families:
            held = len(each.addresses) + len(each.excluded) - len(each.elsewhere)
            counts[each.interface, family] += held
    yield from _shared(config, config.linger.peers)
    for (interface, version), count in counts.items():
        if count > MOST[version]:
            yield error(
                ("linger",),
                f"supports {MOST[version]} IPv{version} addresses on {interface}, not {count}",
            )


def _shared(config: Config, peers: Collection[str]) -> Iterator[Finding]:
    shared = [each for one in config.shared_ips.values() for each in one.addresses]
    for version, most in MOST.items():
        count = sum((":" in each) == (version == 6) for each in shared)
        if count > most:
            yield error(("linger",), f"supports {most} shared IPv{version} addresses, not {count}")
        count = sum((":" in each) == (version == 6) for each in peers)
        if shared and count > MOST_PEERS:
            message = f"{MOST_PEERS} other nodes are supported, not {count} by IPv{version}"
            yield error(("linger", "peers"), message)
