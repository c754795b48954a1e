"""Whether this machine's kernel and interfaces support flowtables (nf_flow_table), determined by a trial."""

import errno
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from typing import Final

from appliance.core.forwarding.flows import trial
from appliance.model.snapshot.frontends import Flowtable
from appliance.net.nftables.nftables import Nftables, NftablesError
from appliance.wire.nftables.nftables_commands import Family

_ADVICE: Final = {
    Flowtable.SOFTWARE: "CONFIG_NF_FLOW_TABLE, CONFIG_NFT_FLOW_OFFLOAD; or leave `flowtable` out",
    Flowtable.HARDWARE: "`ethtool -K INTERFACE hw-tc-offload on`, if its driver can; or set `software`",
}


def objections(
    families: Iterable[Family],
    kind: Flowtable,
    interfaces: Sequence[str],
    *,
    connect: Callable[[], Nftables] = Nftables,
) -> Iterator[str]:
    """Yield why such flowtables are impossible here, beyond rights and nftables; changes nothing."""
    if kind is Flowtable.NONE:
        return
    for family in families:
        try:
            with closing(connect()) as nftables:
                nftables.try_script(trial(family, kind, interfaces))
        except NftablesError as error:
            if not error.is_because(errno.EPERM):
                place = ", ".join(interfaces) or "no interface"
                yield f"no {kind} flowtable on {place}: {error}: {_ADVICE[kind]}"
                return
