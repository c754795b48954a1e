"""Lays documents over each other: a file may set what another one does not."""

from collections.abc import Iterator
from dataclasses import dataclass

from appliance.model.document.tree import Entry, Node
from appliance.model.messages.problems import FilePosition, Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Clash:
    """A key that two layers set: its path, and both places, the lower layer's first."""

    path: Path
    below: FilePosition
    above: FilePosition


@dataclass(frozen=True, slots=True, kw_only=True)
class Layered:
    """Two documents as one, and the keys that both set; for those the lower one holds."""

    root: Node
    clashes: tuple[Clash, ...]


def laid_over(below: Node, above: Node) -> Layered:
    """Return the mappings as one, at any depth: lower keys come first, a key without a value sets nothing."""
    first, second = (Entry(place=each.place, node=each) for each in (below, above))
    return Layered(root=_merged(below, above), clashes=tuple(_clashes(first, second, ())))


def _merged(below: Node, above: Node) -> Node:
    if below.value is None:
        return above
    if not isinstance(below.value, dict) or not isinstance(above.value, dict):
        return below
    entries: dict[str, Entry] = {}
    for key, entry in (*below.value.items(), *above.value.items()):
        first = entries.get(key)
        entries[key] = entry if first is None else _merged_entry(first, entry)
    return Node(place=below.place, value=entries)


def _merged_entry(below: Entry, above: Entry) -> Entry:
    # The place of a key is that of the layer that sets its value.
    place = above.place if below.node.value is None else below.place
    return Entry(place=place, node=_merged(below.node, above.node))


def _clashes(below: Entry, above: Entry, at: Path) -> Iterator[Clash]:
    """Yield the keys that both layers set, unless their values can be one mapping."""
    first, second = below.node.value, above.node.value
    if first is None or second is None:
        return
    if not isinstance(first, dict) or not isinstance(second, dict):
        yield Clash(path=at, below=below.place, above=above.place)
        return
    for key in first:
        if key in second:
            yield from _clashes(first[key], second[key], (*at, key))
