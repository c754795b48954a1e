"""What the kernel makes of packets of shared addresses, compared with the model of the rules, one by one."""

import itertools
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Final

import pytest
from support.linger.shared_model import Decision, Fate, Kind, Tables
from support.network import tcp_frames
from support.network.namespaces import Node, Segment
from support.network.tcp_frames import ACK, FIN, RST, SYN
from support.processes.waiting import Late, wait_until

from appliance.core.linger import ruleset, shared_address_rules
from appliance.core.linger.hops import Hops
from appliance.core.linger.shared_address_rules import SharedElements
from appliance.core.linger.strays import StrayChanges
from appliance.net.netlink.table_contents import TableContents
from appliance.net.nftables.nftables import Nftables
from appliance.wire.linger_strays import Ends
from appliance.wire.nftables import stray_keys
from appliance.wire.nftables.nftables_commands import Family

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "nft", root=True)]

SHARED: Final = {4: "198.51.100.10", 6: "2001:db8:10::10"}
CLIENT: Final = {4: "203.0.113.5", 6: "2001:db8:20::5"}
FAMILIES: Final = {4: Family.IPV4, 6: Family.IPV6}
_FLAGS: Final = {Kind.SYN: SYN, Kind.ANSWER: SYN | ACK, Kind.ACK: ACK, Kind.FIN: FIN | ACK, Kind.RST: RST}
_SENTINEL: Final = 9
_WATCH: Final = """
add table {word} watch
add set {word} watch got {{ type inet_service; }}
add chain {word} watch first {{ type filter hook prerouting priority {priority}; policy accept; }}
add rule {word} watch first {word} daddr {shared} add @got {{ tcp sport }}
"""


class Watched:
    """One node with the rules, two others and a router, and which packets get where."""

    def __init__(self, segment: Segment, family: int) -> None:
        self.family, self.word = family, FAMILIES[family]
        self.one, self.two, self.three, self.router = map(segment.node, ("one", "two", "three", "router"))
        self.one.ip("address", "add", SHARED[family], "dev", "lo")
        # Of what arrives at the node this sees what the rules left, of what arrives at the others all.
        for node, priority in ((self.one, -150), (self.two, -300), (self.three, -300)):
            self.run(node, _WATCH.format(word=self.word, priority=priority, shared=SHARED[family]))

    def run(self, node: Node, script: str) -> None:
        """Run a script of nft in a node."""
        with node.inside():
            connection = Nftables()
            try:
                connection.run(script)
            finally:
                connection.close()

    def address(self, node: Node) -> str:
        """Return a node's own address."""
        return node.address if self.family == 4 else node.address6

    def got(self, node: Node) -> set[int]:
        """Return the ports of the clients whose packets were seen at a node."""
        found = json.loads(node.run(["nft", "-j", "list", "set", self.word.value, "watch", "got"]))
        return {int(each) for part in found["nftables"] for each in part.get("set", {}).get("elem", ())}

    def noted(self, name: str) -> set[tuple[Ends, bytes]]:
        """Return what the node has noted in a set."""
        with self.one.inside():
            elements = TableContents()
            try:
                keys = elements.elements(self.word, ruleset.TABLE, name)
                found = {stray_keys.decode(each, family=self.family) for each in keys}
            finally:
                elements.close()
        return {each for each in found if each is not None}

    def frame(self, ends: Ends, kind: Kind, sender: Node) -> tuple[bytes, bytes, bytes]:
        """Return a packet of a client that a machine forwards to the node."""
        client, client_port, address, port = ends
        packet = tcp_frames.segment(client, client_port, address, port, _FLAGS[kind])
        return _mac(self.one), _mac(sender), packet


def _mac(node: Node) -> bytes:
    return bytes.fromhex(node.mac.replace(":", ""))


@pytest.fixture(params=[4, 6])
def watched(request: pytest.FixtureRequest) -> Iterator[Watched]:
    """Give a node without the rules."""
    with Segment() as segment:
        yield Watched(segment, request.param)


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("table", [ruleset.TABLE, ruleset.GUARD])
def test_the_kernel_decides_as_the_model(watched: Watched, table: str, alone: bool):  # noqa: FBT001  # a case
    """Every kind of packet, of the router and of a node, in every state of its connection; the guard too."""
    word, shared = watched.word, SHARED[watched.family]
    two, three = watched.address(watched.two), watched.address(watched.three)
    model = Tables()
    model.refresh(
        SharedElements(
            others={shared: () if alone else (two, three)},
            alone=frozenset({shared} if alone else ()),
            macs=frozenset({_mac(watched.two)}),
        ),
        0.0,
    )
    states = ("ours", "told", "owned", "given", "nobodys", "unknown")
    senders = (watched.router, watched.two)
    cases = list(itertools.product(states, Kind, senders))
    named: dict[Ends, tuple[str, Kind, Node]] = {
        (CLIENT[watched.family], 5000 + at, shared, 443): case for at, case in enumerate(cases)
    }
    of = {state: [ends for ends, case in named.items() if case[0] == state] for state in states}
    model.connections.update(of["ours"], of["told"])
    told = [(ends, _mac(watched.two)) for ends in of["told"]]
    model.told.update(dict.fromkeys(told, 10.0))
    model.given.update(dict.fromkeys(of["given"], 10.0))
    changes = StrayChanges(owned=tuple((ends, three) for ends in of["owned"]), nobodys=tuple(of["nobodys"]))
    model.learn(changes, 0.0)

    made = ruleset.make(word, [], port=29446, longest=60.0, times={}, shared=True)
    if table == ruleset.GUARD:
        made = ruleset.guard(word, [], longest=60.0, shared=True).replace("flags owner;", "")
    elements = ruleset.Elements(
        addresses=(),
        hops=Hops(direct={}, led={}),
        nodes=frozenset(),
        settled=frozenset(),
        shared=model.shared,
    )
    watched.run(
        watched.one,
        "\n".join(
            (
                made,
                # What has an end here would have it before a slow machine has sent all packets.
                ruleset.refresh(word, elements, table=table).replace("timeout 1s", "timeout 60s"),
                shared_address_rules.learned(word, changes, table=table),
                shared_address_rules.told(word, told, table=table),
                # Its time-out would be over before a slow machine has sent all packets.
                shared_address_rules.given(word, of["given"], table=table)
                .replace(" }", " timeout 60s }")
                .replace(", ", " timeout 60s, "),
                ruleset.own(word, [*of["ours"], *of["told"]], table=table),
            )
        ),
    )
    last: Ends = (CLIENT[watched.family], _SENTINEL, shared, 443)
    for node in reversed(senders):
        frames = [watched.frame(ends, kind, node) for ends, (_, kind, by) in named.items() if by is node]
        tcp_frames.send(node, [*frames, watched.frame(last, Kind.SYN, node)])
    wait_until(lambda: _SENTINEL in watched.got(watched.one), what="the last packet is taken")

    expected = {
        ends: model.decide(kind, ends, _mac(sender), 0.0) for ends, (_, kind, sender) in named.items()
    }
    if table == ruleset.GUARD:
        expected = {ends: replace(each, noted="") for ends, each in expected.items()}
    copies = {two: watched.two, three: watched.three}

    def seen() -> dict[Ends, Decision]:
        here = watched.got(watched.one)
        there = {name: watched.got(node) for name, node in copies.items()}
        noted = {name: {ends for ends, _ in watched.noted(name)} for name in shared_address_rules.SETS}
        return {
            ends: Decision(
                fate=(
                    Fate.TAKEN
                    if ends[1] in here
                    else Fate.SENT
                    if any(ends[1] in each for each in there.values())
                    else Fate.DROPPED
                ),
                nodes=frozenset(name for name, each in there.items() if ends[1] in each),
                noted=next((name for name, each in noted.items() if ends in each), ""),
            )
            for ends in named
        }

    with suppress(Late):  # the comparison below tells what differs
        wait_until(lambda: seen() == expected, what="copies arrive", timeout=5.0)
    now = seen()
    wrong = {named[ends]: (now[ends], each) for ends, each in expected.items() if now[ends] != each}
    assert not wrong
