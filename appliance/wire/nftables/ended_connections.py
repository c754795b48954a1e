"""How long the kernel remembers ended connections, in the language of nft(8): `ct timeout`.

The kernel's own timeouts are 10 and 120 seconds (nf_conntrack_proto_tcp.c): at 2,200 new connections a
second, ended ones would fill its table of 262,144, and then it drops every new one.
"""

from collections.abc import Mapping
from typing import Final

from appliance.wire.nftables.nftables_commands import Family

OF_ANY_PACKET: Final = 'ct timeout set "ended"'
"""A rule's statement for a packet that begins a connection in the kernel's table; it has no verdict."""

OF_A_FIRST_PACKET: Final = f"ct state new tcp flags & (fin | syn | rst | ack) == syn {OF_ANY_PACKET}"
"""A rule's statement for the first packet of a connection; it has no verdict."""

SYSCTLS: Final = {
    **{each: each for each in ("syn_sent", "syn_recv", "established", "fin_wait", "close_wait", "last_ack")},
    "retrans": "max_retrans",
    "unack": "unacknowledged",
}
"""The states of open connections in nft(8), and in nf_conntrack_tcp_timeout_NAME."""

_ENDED: Final = {"close": 1, "time_wait": 2}
"""For connections that were reset, and that both sides have closed.

Not less: a last FIN is sent again after 0.2 s or more if its acknowledgement was lost. Not more: a client may
reuse the port at once, for a connection to the node that then serves the address. Once the address is back
here, that connection would be mistaken for the former one, as one of ours.
"""


def time_outs(family: Family, table: str, others: Mapping[str, int]) -> str:
    """Return the line that adds to a table the object "ended", which the rule names.

    `others` are the seconds for open connections, by nft's names: nft fills in missing ones with constants of
    its own, and the kernel's settings do not apply.
    """
    policy = ", ".join(f"{name}: {seconds}" for name, seconds in {**others, **_ENDED}.items())
    what = f"protocol tcp; l3proto {family}; policy = {{ {policy} }}"
    return f"add ct timeout {family} {table} ended {{ {what}; }}"
