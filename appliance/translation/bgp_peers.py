"""Reads frr-peers.json, OpenShift's addresses and BGP peers of all nodes, as `shared_ips` and `bgp`.

The file is that of the machine-config operator: baremetal-runtimecfg's `FRRPeerMapping`, and the installer's
`apiVIPs` and `ingressVIPs`. A host in `hostOverrides` has those peers instead of `defaultPeers`, as there.
The peers of all hosts are judged, those of this node are used. Outcomes are of keys, and only of those that
are refused or changed.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final, TypeVar

from msgspec.structs import replace

from appliance.model.config.values import bgp
from appliance.model.config.values.vrrp import KEY_FILE, router_address
from appliance.model.document.document import Document
from appliance.model.document.tree import Entry, Node, Plain, plain
from appliance.model.messages.problems import FilePosition, Path, dotted, nearest
from appliance.model.messages.quoting import printable, shown
from appliance.model.rules.node_rules import own_name
from appliance.translation.translation import LineOutcome, Outcome, Translation
from appliance.translation.tree_builder import TreeBuilder

BFD: Final[Mapping[str, Plain]] = {"interval": "300ms", "multiplier": 3}
"""BFD's times in OpenShift, where only on and off can be chosen."""

MULTIHOP: Final = 255
"""Hops of FRR's `ebgp-multihop` without a number, as OpenShift writes it."""

_VIPS: Final = {"apiVIPs": "api", "ingressVIPs": "ingress"}
_KEYS: Final = ("localASN", "defaultPeers", "hostOverrides", "communities", *_VIPS)
_SECONDS: Final = re.compile(r"([0-9]{1,5})s?", re.ASCII)

Keys = dict[str, Plain]
Value = TypeVar("Value")


def translate(document: Document, *, source: str, hostname: str) -> Translation:
    """Return what the file at `source` says for the node `hostname`, which may have its domain."""
    reading = _Reading(source)
    reading.take(document.root, hostname)
    return Translation(root=reading.tree.root, lines=tuple(reading.lines))


class _Reading:
    """What is read so far: the configuration, and which keys are refused or mean something else here."""

    def __init__(self, source: str) -> None:
        self.start = FilePosition(line=1, column=1, source=source)
        self.tree = TreeBuilder(self.start)
        self.lines: list[LineOutcome] = []

    def take(self, root: Node, hostname: str) -> None:
        """Read the whole file."""
        given = self._mapping(root, (), _KEYS, required=("localASN",))
        # Where it is refused, another one takes its place: no key of ours is missing as well.
        self.tree.put(("bgp", "asn"), 1, self.start)
        if "localASN" in given:
            for place, asn in self._value(("localASN",), given["localASN"].node, bgp.asn):
                self.tree.put(("bgp", "asn"), asn, place)
        communities = self._items(given, "communities", bgp.community)
        for key, name in _VIPS.items():
            addresses = self._items(given, key, _host_route)
            for place, value in addresses:
                self.tree.append(("shared_ips", name, "addresses"), value, place)
            for place, value in communities if addresses else ():
                self.tree.append(("shared_ips", name, "communities"), value, place)
        for name, peer in self._peers(given, hostname).items():
            self.tree.graft(("bgp", "neighbors", name), peer, peer.place)

    def refuse(self, path: Path, place: FilePosition, reason: str) -> None:
        """Note a key that has no equivalent here."""
        self._note(Outcome.REFUSED, path, place, reason)

    def _peers(self, given: Mapping[str, Entry], hostname: str) -> dict[str, Node]:
        """Return the peers of a node by the names that they get here."""
        defaults = self._list_of_peers(given, "defaultPeers", ())
        overrides = given.get("hostOverrides")
        hosts = self._mapping(overrides.node, ("hostOverrides",), None) if overrides else {}
        by_host = {host: self._list_of_peers(hosts, host, ("hostOverrides",)) for host in hosts}
        own = own_name(tuple(by_host), hostname)
        return defaults if own is None else by_host[own]

    def _list_of_peers(self, given: Mapping[str, Entry], key: str, at: Path) -> dict[str, Node]:
        found: dict[str, Node] = {}
        for index, node in enumerate(self._list(given, key, at)):
            path = (*at, key, index)
            for address, peer in self._peer(path, node):
                name = address.replace(":", "-")
                if name in found:
                    self.refuse((*path, "peerAddress"), node.place, "is in this list twice")
                found[name] = peer
        return found

    def _peer(self, path: Path, node: Node) -> Iterator[tuple[str, Node]]:
        """Yield a peer's address and its keys here, unless its address or number is refused."""
        given = self._mapping(node, path, _PEER, required=("peerAddress", "peerASN"))
        tree = TreeBuilder(self._place(node.place))
        for key, entry in given.items():
            for place, keys in self._value((*path, key), entry.node, _PEER[key]):
                for own, value in keys.items():
                    tree.put((own,), value, place)
        self._compare_timers(path, given)
        said = plain(tree.root)
        if isinstance(said, dict) and said.keys() >= {"address", "asn"}:
            yield str(said["address"]), tree.root

    def _compare_timers(self, path: Path, given: Mapping[str, Entry]) -> None:
        """Note a time between keepalives that is another one here."""
        if "keepaliveTime" not in given:
            return
        hold, keepalive = (
            _digits(given[key].node.value) if key in given else "" for key in ("holdTime", "keepaliveTime")
        )
        if keepalive and (not hold or int(keepalive) * 3 != int(hold)):
            reason = "the time between keepalives is a third of the hold time here"
            self._note(Outcome.CHANGED, (*path, "keepaliveTime"), given["keepaliveTime"].place, reason)

    def _mapping(
        self, node: Node, path: Path, known: Collection[str] | None, required: Collection[str] = ()
    ) -> dict[str, Entry]:
        """Return the entries of a mapping that are set; `known` are the keys that it may have, None for any.

        As in Go, an empty text and null set nothing.
        """
        if not isinstance(node.value, dict):
            self.refuse(path, node.place, f"must be a mapping, not {shown(plain(node))}")
            return {}
        found = {key: entry for key, entry in node.value.items() if entry.node.value not in (None, "")}
        for key in required:
            if key not in found:
                self.refuse((*path, key), node.place, "is missing")
        for key in [each for each in found if known is not None and each not in known]:
            meant = nearest(key, known or ())
            hint = f": did you mean `{meant}`?" if meant else ""
            self.refuse((*path, key), found.pop(key).place, f"is no key of this file{hint}")
        return found

    def _list(self, given: Mapping[str, Entry], key: str, at: Path) -> list[Node]:
        value = given[key].node.value if key in given else []
        if isinstance(value, list):
            return value
        self.refuse((*at, key), given[key].place, f"must be a list, not {shown(plain(given[key].node))}")
        return []

    def _items(
        self, given: Mapping[str, Entry], key: str, read: Callable[[object], Value]
    ) -> list[tuple[FilePosition, Value]]:
        """Return the valid items of a list, with their places."""
        items = enumerate(self._list(given, key, ()))
        return [found for at, node in items for found in self._value((key, at), node, read)]

    def _value(
        self, path: Path, node: Node, read: Callable[[object], Value]
    ) -> Iterator[tuple[FilePosition, Value]]:
        """Yield a value with its place, unless it is refused."""
        try:
            yield self._place(node.place), read(plain(node))
        except ValueError as error:
            self.refuse(path, node.place, str(error))

    def _note(self, outcome: Outcome, path: Path, place: FilePosition, reason: str) -> None:
        text = printable(dotted(path))
        found = LineOutcome(place=self._place(place), text=text, outcome=outcome, reason=printable(reason))
        self.lines.append(found)

    def _place(self, place: FilePosition) -> FilePosition:
        return replace(place, source=self.start.source)


def _host_route(value: object) -> str:
    """Return the address of one host with its prefix length."""
    address = router_address(value)
    return f"{address}/{128 if ':' in address else 32}"


def _password(value: object) -> str:
    """Return a password, which is never a file here."""
    found = bgp.password(value)
    if found.startswith(KEY_FILE):
        raise ValueError(f"begins with `{KEY_FILE}`, which names a file here")
    return found


def _is_on(value: object) -> bool:
    """Return the boolean that a text stands for."""
    if value in ("true", "false"):
        return value == "true"
    raise ValueError(f'must be `"true"` or `"false"`, not {shown(value)}')


def _port(value: object) -> Keys:
    """Return the port, nothing for Go's 0."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 65535:
        return {"port": value} if value else {}
    raise ValueError(f"must be a port, 1 to 65535, not {shown(value)}")


def _digits(value: object) -> str:
    """Return whole seconds as digits, "" for something else; the operators write `90` or `90s`."""
    found = _SECONDS.fullmatch(value) if isinstance(value, str) else None
    return found[1] if found else ""


def _hold(value: object) -> Keys:
    seconds = _checked_seconds(value)
    bgp.hold_time(f"{seconds}s")
    return {"hold": f"{seconds}s"}


def _checked_seconds(value: object) -> str:
    found = _digits(value)
    if found:
        return found
    raise ValueError(f'must be whole seconds as text, such as `"90"`, not {shown(value)}')


def _keepalive(value: object) -> Keys:
    _checked_seconds(value)
    return {}


_PEER: Final[Mapping[str, Callable[[object], Keys]]] = {
    "peerAddress": lambda value: {"address": bgp.neighbor_address(value)},
    "peerASN": lambda value: {"asn": bgp.asn(value)},
    "password": lambda value: {"password": _password(value)},
    "port": _port,
    "bfdEnabled": lambda value: {"bfd": dict(BFD)} if _is_on(value) else {},
    "ebgpMultiHop": lambda value: {"multihop": MULTIHOP} if _is_on(value) else {},
    "holdTime": _hold,
    "keepaliveTime": _keepalive,
}
