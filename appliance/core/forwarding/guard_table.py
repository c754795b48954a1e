"""The guard of the rules by which the kernel forwards: a second table, in the language of nft(8).

It belongs to our process, so that no flush by another program affects it, and does nothing while the rules
are present. While they are missing, the kernel continues to track and translate connections: it does so as
long as there is any chain of the type nat, and any rule that uses conntrack (nf_nat_register_fn,
nf_ct_netns_get). New connections to a frontend are dropped and not refused: the client's kernel tries again,
and finds the rules.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from appliance.core.forwarding import ruleset
from appliance.core.forwarding.forwarded import ForwardedFrontend
from appliance.wire.nftables.nftables_commands import Family

TABLE: Final = "lb_forward_guard"

_BEHIND: Final = -90
"""After the rules have translated their packets (-100)."""


def guard(family: Family, frontends: Sequence[ForwardedFrontend]) -> str:
    """Return the script that makes the guard of these frontends from any state."""
    at = f"{family} {TABLE}"
    chain, here = f"{at} prerouting", f"{family} daddr . tcp dport"
    staying = [each for each in frontends if not each.leaving]
    own = [
        "ct state != new return", "meta l4proto != tcp return", f"{ruleset.FLAGS} != syn return",
        "ct status dnat return", "fib daddr type != local return", "socket transparent 0 return",
        f"{here} @bound drop", "tcp dport @bound_ports drop",
    ]  # fmt: skip
    return "\n".join(
        (
            f"add table {at} {{ flags owner; }}",
            f"add set {at} bound {{ type {ruleset.WORDS[family]} . inet_service; }}",
            f"add set {at} bound_ports {{ type inet_service; }}",
            f"add chain {at} translating {{ type nat hook prerouting priority {_BEHIND}; policy accept; }}",
            f"add chain {chain} {{ type filter hook prerouting priority {_BEHIND}; policy accept; }}",
            f"flush chain {chain}",
            *(f"add rule {chain} {rule}" for rule in own),
            *_filled(f"{at} bound", (place for _, place in ruleset.places(family, staying))),
            *_filled(f"{at} bound_ports", (port for _, port in ruleset.ports(family, staying))),
        )
    )


def _filled(name: str, elements: Iterable[str]) -> Iterable[str]:
    yield f"flush set {name}"
    yield from ruleset.adding(name, elements).splitlines()
