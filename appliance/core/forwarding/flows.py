"""Flowtables: established connections are translated where their packets arrive, bypassing all rules.

The rules of forwarding see the first packets of a connection, and those that end it (FIN, RST). The kernel
takes a connection out of the table for these, after half a minute of silence, and when conntrack forgets it.
The script is separate from the rules: a kernel or an interface without flowtables still forwards.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from appliance.core.forwarding.forwarded import ForwardedFrontend
from appliance.core.forwarding.ruleset import TABLE, mark
from appliance.model.snapshot.frontends import Flowtable
from appliance.wire.nftables.nftables_commands import Family

CHAIN: Final = "flows"
"""The chain that puts connections into flowtables."""

MOST_DEVICES: Final = 256
"""How many interfaces a flowtable may have (NFT_NETDEVICE_MAX of the kernel)."""

_KINDS: Final = (Flowtable.SOFTWARE, Flowtable.HARDWARE)


def with_flows(family: Family, frontends: Sequence[ForwardedFrontend], devices: Sequence[str]) -> str:
    """Return the script that makes the flowtables of these frontends from any state.

    "" if no frontend wants one. Every present flow returns to the rules, which put it into the new table at
    its next packet.
    """
    if not devices or all(each.config.flowtable is Flowtable.NONE for each in frontends):
        return ""
    at = f"{family} {TABLE}"
    lines = [
        f"add chain {at} {CHAIN} {{ type filter hook forward priority 0; policy accept; }}",
        f"flush chain {at} {CHAIN}",
    ]
    for kind in _KINDS:
        mine = [each for each in frontends if each.config.flowtable is kind]
        lines += _flowtable(family, kind, mine, devices)
    return "\n".join(lines) + "\n"


def without_flows(family: Family) -> str:
    """Return the script that removes all flowtables: connections are forwarded by the rules alone."""
    at = f"{family} {TABLE}"
    lines = [f"flush chain {at} {CHAIN}", f"delete chain {at} {CHAIN}"]
    for kind in _KINDS:
        lines += [f"delete set {at} {kind}_marks", *_absent(at, kind)]
    return "\n".join(lines) + "\n"


def trial(family: Family, kind: Flowtable, devices: Sequence[str]) -> str:
    """Return a script that the kernel accepts if it supports such a flowtable there; only for a trial."""
    at = f"{family} {TABLE}_trial"
    return f"add table {at}\n{_present(at, kind, devices)}\n"


def _flowtable(
    family: Family, kind: Flowtable, frontends: Sequence[ForwardedFrontend], devices: Sequence[str]
) -> Iterator[str]:
    at = f"{family} {TABLE}"
    yield f"add set {at} {kind}_marks {{ type mark; }}"
    yield f"flush set {at} {kind}_marks"
    yield from _absent(at, kind)
    marks = ", ".join(mark(server.number) for each in frontends for server in each.servers)
    if marks:
        yield f"add element {at} {kind}_marks {{ {marks} }}"
        yield _present(at, kind, devices)
        yield f"add rule {at} {CHAIN} ct mark @{kind}_marks ct state established flow add @{kind}"


def _absent(at: str, kind: Flowtable) -> tuple[str, str]:
    """Return the commands that remove a flowtable, whether it is present or not."""
    return f"add flowtable {at} {kind} {{ hook ingress priority 0; }}", f"delete flowtable {at} {kind}"


def _present(at: str, kind: Flowtable, devices: Sequence[str]) -> str:
    listed = ", ".join(f'"{each}"' for each in devices[:MOST_DEVICES])
    flags = " flags offload;" if kind is Flowtable.HARDWARE else ""
    return f"add flowtable {at} {kind} {{ hook ingress priority 0; devices = {{ {listed} }};{flags} }}"
