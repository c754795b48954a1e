"""How long the kernel remembers connections that have ended, in the language of nft(8): `ct timeout`.

The kernel's own time-outs are 10 and 120 seconds (nf_conntrack_proto_tcp.c): at 2,200 new connections a
second those that have ended would fill its table of 262,144, and then it drops every new one.
"""

from collections.abc import Mapping
from typing import Final

from appliance.wire.nftables.nftables_commands import Family

OF_A_FIRST_PACKET: Final = 'ct state new tcp flags & (fin | syn | rst | ack) == syn ct timeout set "ended"'
"""What a rule does with the first packet of a connection; no verdict."""

SYSCTLS: Final = {
    **{each: each for each in ("syn_sent", "syn_recv", "established", "fin_wait", "close_wait", "last_ack")},
    "retrans": "max_retrans",
    "unack": "unacknowledged",
}
"""How connections that have not ended are called by nft(8), and in nf_conntrack_tcp_timeout_NAME."""

_ENDED: Final = {"close": 1, "time_wait": 2}
"""Of connections that were reset, and that both sides have closed.

Not less: a last FIN is sent again after 0.2 s or more where its acknowledgement was lost. Not more: a client
may use the port again at once, for a connection to the node that serves the address then. Once the address is
back here, that one would be taken for the former, as one of ours.
"""


def time_outs(family: Family, table: str, others: Mapping[str, int]) -> str:
    """Return the line that gives a table the object "ended", which the rule names.

    `others` are the seconds of connections that have not ended, by nft's names: what is left out, nft fills
    in with constants of its own, and the kernel's settings do not hold.
    """
    policy = ", ".join(f"{name}: {seconds}" for name, seconds in {**others, **_ENDED}.items())
    what = f"protocol tcp; l3proto {family}; policy = {{ {policy} }}"
    return f"add ct timeout {family} {table} ended {{ {what}; }}"
