"""Values by node: one file for all nodes, in which a value may be given for each node by its name.

`priority: { lb-0: 150, lb-1: 100 }` is 150 at lb-0. Every key whose value is not a mapping by itself can be
given so; a node that is not named has the key's default.
"""

from collections.abc import Iterator
from functools import cached_property

from msgspec.structs import replace

from appliance.model.document.document import Document
from appliance.model.document.tree import Entry, Node
from appliance.model.messages.problems import Finding, Path
from appliance.model.rules.findings import key_error
from appliance.model.rules.node_rules import own_name
from appliance.model.validation.unknown_keys import field_at, is_mapping

_NODES = "nodes"


class ByNode:
    """The values by node of a document, which names its nodes in `nodes`."""

    def __init__(self, document: Document) -> None:
        self._document = document
        entry = _entries(document.root).get(_NODES)
        self.nodes = tuple(_entries(entry.node)) if entry else ()

    @cached_property
    def _given(self) -> dict[Path, dict[str, Entry]]:
        """Return the values by node, with their paths."""
        return dict(self._below(self._document.root, ())) if self.nodes else {}

    def of(self, node: str | None) -> Document:
        """Return the document for the node with this host name, or if none has it, for the first."""
        if not self._given:
            return self._document
        return Document(root=self._chosen(self._document.root, (), self._own(node)))

    def others(self, node: str | None) -> tuple[str, ...]:
        """Return the nodes for which the document may differ from that for `node`."""
        return tuple(each for each in self.nodes if each != self._own(node)) if self._given else ()

    def _own(self, node: str | None) -> str:
        return (own_name(self.nodes, node) if node else None) or self.nodes[0]

    def findings(self) -> Iterator[Finding]:
        """Yield the names that are no nodes."""
        for path, values in self._given.items():
            for name in values.keys() - self.nodes:
                yield key_error((*path, name), f"`{name}` is none of `nodes`: {', '.join(self.nodes)}")

    def _below(self, node: Node, at: Path) -> Iterator[tuple[Path, dict[str, Entry]]]:
        for key, entry in _entries(node).items():
            path, values = (*at, key), _entries(entry.node)
            if not values or path == (_NODES,):
                continue
            if not values.keys().isdisjoint(self.nodes) and _is_value(path):
                yield path, values
            else:
                yield from self._below(entry.node, path)

    def _chosen(self, node: Node, at: Path, name: str) -> Node:
        entries: dict[str, Entry] = {}
        for key, entry in _entries(node).items():
            path = (*at, key)
            if path in self._given:
                if name in self._given[path]:
                    entries[key] = replace(entry, node=self._given[path][name].node)
            elif any(each[: len(path)] == path for each in self._given):
                entries[key] = replace(entry, node=self._chosen(entry.node, path, name))
            else:
                entries[key] = entry
        return Node(place=node.place, value=entries)


def _is_value(path: Path) -> bool:
    """Return whether the configuration has a key at a path, whose value is not a mapping."""
    above = all(is_mapping(path[:depth]) for depth in range(1, len(path)))
    return above and field_at(path) is not None and not is_mapping(path)


def _entries(node: Node) -> dict[str, Entry]:
    return node.value if isinstance(node.value, dict) else {}
