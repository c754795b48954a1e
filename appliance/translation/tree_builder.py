"""Builds a configuration key by key, each with its place in the foreign file."""

from appliance.model.document.tree import Entry, Node, Plain
from appliance.model.messages.problems import FilePosition


class TreeBuilder:
    """A mapping that grows; its place is that of the first key put below it."""

    def __init__(self, place: FilePosition) -> None:
        self._root = Node(place=place, value={})

    @property
    def root(self) -> Node:
        """What has been put so far."""
        return self._root

    def put(self, path: tuple[str, ...], value: Plain, place: FilePosition) -> None:
        """Set the value at a path of keys; an old value is replaced, and missing mappings are created."""
        *above, last = path
        self._mapping(tuple(above), place)[last] = Entry(place=place, node=_node(value, place))

    def graft(self, path: tuple[str, ...], branch: Node, place: FilePosition) -> None:
        """Put the content of another builder at a path of keys."""
        *above, last = path
        self._mapping(tuple(above), place)[last] = Entry(place=place, node=branch)

    def append(self, path: tuple[str, ...], value: Plain, place: FilePosition) -> None:
        """Add an item to the list at a path; the first item creates the list."""
        *above, last = path
        entries = self._mapping(tuple(above), place)
        entry = entries.setdefault(last, Entry(place=place, node=Node(place=place, value=[])))
        if isinstance(entry.node.value, list):
            entry.node.value.append(_node(value, place))
        else:
            raise TypeError(f"{path} is not a list")

    def has(self, path: tuple[str, ...]) -> bool:
        """Return whether anything was put at a path."""
        node = self._root
        for step in path:
            if not isinstance(node.value, dict) or step not in node.value:
                return False
            node = node.value[step].node
        return True

    def _mapping(self, path: tuple[str, ...], place: FilePosition) -> dict[str, Entry]:
        entries = self._entries(self._root)
        for step in path:
            entry = entries.setdefault(step, Entry(place=place, node=Node(place=place, value={})))
            entries = self._entries(entry.node)
        return entries

    @staticmethod
    def _entries(node: Node) -> dict[str, Entry]:
        if not isinstance(node.value, dict):
            raise TypeError(f"the value on line {node.place.line} is not a mapping")
        return node.value


def _node(value: Plain, place: FilePosition) -> Node:
    if isinstance(value, dict):
        entries = {key: Entry(place=place, node=_node(each, place)) for key, each in value.items()}
        return Node(place=place, value=entries)
    if isinstance(value, list):
        return Node(place=place, value=[_node(each, place) for each in value])
    return Node(place=place, value=value)
