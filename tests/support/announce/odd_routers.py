"""Neighbours that are no usual routers: Debian's GoBGP and ExaBGP. They learn routes, and forward nothing."""

import json
from abc import abstractmethod
from collections.abc import Sequence
from typing import Final

from support.announce.routers import ASN, Router
from support.network.namespaces import Node
from support.run import tools

Learnt = dict[str, frozenset[str]]
"""The communities of a route by its next hop."""

_DRAINED: Final = "65535:0"


class OddRouter(Router):
    """One that tells what it has learnt."""

    @abstractmethod
    def learnt(self, address: str) -> Learnt:
        """Return the routes of an address."""

    def states(self, address: str, nodes: Sequence[Node]) -> list[str]:
        """Return what each node announces an address as: served, drained, or "" for nothing."""
        found = self.learnt(address)
        own = [next((hop for hop in found if hop in (each.address, each.address6)), "") for each in nodes]
        return [hop and ("drained" if _DRAINED in found[hop] else "served") for hop in own]


class GoBgpRouter(OddRouter):
    """GoBGP, asked by its own command."""

    def __init__(self, node: Node, neighbors: Sequence[str], *, asn: int) -> None:
        super().__init__(node)
        config = {
            "global": {"config": {"as": ASN, "router-id": node.address}},
            "neighbors": [
                {
                    "config": {"neighbor-address": each, "peer-as": asn},
                    "timers": {"config": {"connect-retry": 1, "hold-time": 9, "keepalive-interval": 3}},
                    "graceful-restart": {"config": {"enabled": True, "restart-time": 15}},
                    "afi-safis": [
                        {"config": {"afi-safi-name": f"ipv{6 if ':' in each else 4}-unicast"}},
                    ],
                }
                for each in neighbors
            ],
        }
        path = self.root / "gobgp.json"
        path.write_text(json.dumps(config))
        gobgpd = tools.path("gobgpd") or "gobgpd"
        words = [gobgpd, "-f", str(path), "-t", "json", "-p", "--pprof-disable"]
        self._start([*words, "--api-hosts", "127.0.0.1:50051"], "log")

    def learnt(self, address: str) -> Learnt:
        """Return what `gobgp` shows of its table."""
        family = "ipv6" if ":" in address else "ipv4"
        gobgp = tools.path("gobgp") or "gobgp"
        shown = self.node.run([gobgp, "-u", "127.0.0.1", "global", "rib", "-a", family, "-j"], check=False)
        if not shown.startswith("{"):
            return {}  # it does not answer yet, or it has no route
        paths = [path for to, found in json.loads(shown).items() if _host(to) == address for path in found]
        return {hop: communities for path in paths for hop, communities in _attributes(path["attrs"])}


def _attributes(attributes: Sequence[dict[str, object]]) -> list[tuple[str, frozenset[str]]]:
    """Return next hop and communities of a path, by the types of RFC 4271, 1997 and 4760."""
    hops = [str(each["nexthop"]) for each in attributes if each["type"] in (3, 14)]
    numbers = [each["communities"] for each in attributes if each["type"] == 8]
    found = frozenset(
        f"{each >> 16}:{each & 0xFFFF}" for listed in numbers if isinstance(listed, list) for each in listed
    )
    return [(hop, found) for hop in hops]


class ExaBgpRouter(OddRouter):
    """ExaBGP, which hands what it receives to a process as JSON."""

    def __init__(self, node: Node, neighbors: Sequence[str], *, asn: int) -> None:
        super().__init__(node)
        self._received = self.root / "received"
        self._received.touch()
        blocks = "".join(
            f"""neighbor {each} {{
  router-id {node.address}; local-address {node.address6 if ":" in each else node.address};
  local-as {ASN}; peer-as {asn}; hold-time 9;
  family {{ ipv{6 if ":" in each else 4} unicast; }}
  api {{ processes [ received ]; neighbor-changes; receive {{ parsed; update; }} }}
}}
"""
            for each in neighbors
        )
        path = self.root / "exabgp.conf"
        # What it says back is no command, which ExaBGP only logs.
        run = f"{tools.path('tee') or 'tee'} {self._received}"
        path.write_text(f"process received {{ run {run}; encoder json; }}\n{blocks}")
        settings = (
            "exabgp.daemon.drop=false",
            "exabgp.daemon.user=root",
            "exabgp.api.cli=false",
            "exabgp.api.ack=false",
        )
        self._start(["env", *settings, tools.path("exabgp") or "exabgp", str(path)], "log")

    def learnt(self, address: str) -> Learnt:
        """Return what is left of all that it has received."""
        found: dict[str, tuple[str, frozenset[str]]] = {}
        for line in self._received.read_text().split("\n")[:-1]:
            said = json.loads(line)
            neighbor = said.get("neighbor", {})
            peer = neighbor.get("address", {}).get("peer", "")
            if said["type"] == "state" and neighbor.get("state") == "down":
                found.pop(peer, None)
            update = neighbor.get("message", {}).get("update", {})
            if any(_has(routes, address) for routes in update.get("withdraw", {}).values()):
                found.pop(peer, None)
            communities = update.get("attribute", {}).get("community", [])
            # With IPv6 the link-local address is a second next hop.
            if any(_has(hops.get(peer, []), address) for hops in update.get("announce", {}).values()):
                found[peer] = (peer, frozenset(f"{high}:{low}" for high, low in communities))
        return dict(found.values())


def _has(routes: list[dict[str, str]], address: str) -> bool:
    return any(_host(each["nlri"]) == address for each in routes)


def _host(prefix: str) -> str:
    return prefix.partition("/")[0]
