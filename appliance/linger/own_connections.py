"""This machine's connections, as the rules name those that the kernel has not tracked from their start."""

from collections.abc import Iterable, Iterator

from appliance.core.linger import ruleset
from appliance.net.netlink.socket_connections import SocketConnections, both_ways
from appliance.net.nftables.nftables import NftablesError
from appliance.wire.nftables.nftables_commands import Family


def named(family: Family, addresses: Iterable[str], *, table: str) -> Iterator[str]:
    """Yield the scripts that add them to a table, as they are no other node's. Raises NftablesError."""
    listed = SocketConnections()
    try:
        for address in addresses:
            if script := ruleset.own(family, both_ways(listed.at(address)), table=table):
                yield script
    except OSError as error:
        raise NftablesError(f"the connections of this machine cannot be listed: {error}") from error
    finally:
        listed.close()
