"""Reads the operator's file, YAML or JSON, into plain values with their line and column.

A file that cannot be read at all is one DocumentError. `model.config` checks the meaning of the values.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from appliance.model.document.json_reader import read_json
from appliance.model.document.tree import (
    DocumentError,
    EmptyDocumentError,
    Entry,
    Node,
    Plain,
    Text,
    plain,
)
from appliance.model.document.yaml_reader import read_yaml
from appliance.model.messages.problems import FilePosition, Finding, FindingTarget, Path, Problem, dotted
from appliance.model.messages.quoting import printable, shown
from appliance.model.messages.secrets import concealed


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The top level mapping of a file."""

    root: Node

    @property
    def value(self) -> dict[str, Plain]:
        """The plain values, fresh for every caller."""
        value = plain(self.root)
        return value if isinstance(value, dict) else {}

    @property
    def keys(self) -> Collection[str]:
        """The keys of the top level."""
        return self.root.value.keys() if isinstance(self.root.value, dict) else ()

    def section(self, name: str) -> Plain:
        """Return the plain value of one key of the top level, None without it."""
        entries = self.root.value
        return plain(entries[name].node) if isinstance(entries, dict) and name in entries else None

    def place(self, path: Path, spot: FindingTarget = FindingTarget.VALUE) -> FilePosition:
        """Return the position of the value at a path; if there is none, that of its nearest parent.

        For a mapping, and with FindingTarget.KEY, it is the position of the key.
        """
        there = list(self._along(path))
        key, node = (there[-1].place, there[-1].node) if there else (self.root.place, self.root)
        by_key = spot is FindingTarget.KEY or isinstance(node.value, dict) or len(there) < len(path)
        return key if by_key else node.place

    def has(self, path: Path) -> bool:
        """Return whether the document has a value at a path."""
        return len(list(self._along(path))) == len(path)

    def respelt(self, spelling: Mapping[Path, str]) -> "Document":
        """Return the document with corrected keys at some paths; problems show the keys as written."""
        return Document(root=_respelt(self.root, spelling, ()))

    def problem(self, finding: Finding, *, source: str) -> Problem:
        """Return the problem of a finding: with its position, and its path with the keys as written."""
        place = self.place(finding.path, finding.spot)
        written = [
            each.written or step for each, step in zip(self._along(finding.path), finding.path, strict=False)
        ]
        path = concealed((*written, *finding.path[len(written) :]))
        return Problem(
            message=printable(finding.message),
            severity=finding.severity,
            source=place.source or source,
            path=printable(dotted(path)) or None,
            line=place.line,
            column=place.column,
        )

    def _along(self, path: Path) -> Iterator[Entry]:
        """Yield the entries along a path, as many as there are; an item of a list is its own key."""
        node = self.root
        for step in path:
            match node.value, step:
                case dict() as entries, str() if step in entries:
                    entry = entries[step]
                case list() as items, int() if step < len(items):
                    entry = Entry(place=items[step].place, node=items[step])
                case _:
                    return
            yield entry
            node = entry.node


def read(text: str | bytes) -> Document:
    """Return the document; raises DocumentError."""
    characters = _decoded(text) if isinstance(text, bytes) else text
    root = _root(characters.removeprefix("\ufeff"))
    if root is None or root.value is None:
        raise EmptyDocumentError(
            "the file is empty: `{}` is a configuration that does nothing", FilePosition(line=1, column=1)
        )
    if not isinstance(root.value, dict):
        raise DocumentError(
            f"the file must hold a mapping (`pools: ...`), not {shown(plain(root))}", root.place
        )
    return Document(root=root)


def _respelt(node: Node, spelling: Mapping[Path, str], at: Path) -> Node:
    if not isinstance(node.value, dict):
        return node
    entries: dict[str, Entry] = {}
    for key, entry in node.value.items():
        right = spelling.get((*at, key))
        below = replace(entry, node=_respelt(entry.node, spelling, (*at, key)))
        entries[right or key] = replace(below, written=key) if right else below
    return Node(place=node.place, value=entries)


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        before = data[: error.start].decode()
        message = f"not UTF-8: the byte 0x{data[error.start]:02x}"
        raise DocumentError(message, Text(before).at(len(before))) from error


def _root(text: str) -> Node | None:
    """Read JSON if the text begins like it, otherwise YAML.

    YAML in braces begins like JSON too. If both readers fail, the error further down in the text is raised:
    the reader that got further was probably the right one.
    """
    if not text.lstrip().startswith("{"):
        return read_yaml(text)
    try:
        return read_json(text)
    except DocumentError as json_error:
        return _yaml_after(text, json_error)


def _yaml_after(text: str, json_error: DocumentError) -> Node | None:
    try:
        return read_yaml(text)
    except DocumentError as yaml_error:
        if _order(json_error.place) > _order(yaml_error.place):
            raise json_error from None
        raise


def _order(place: FilePosition) -> tuple[int, int]:
    return place.line, place.column
