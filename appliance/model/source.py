"""The operator's file as plain values and the place of each: YAML, or JSON, as YAML allows.

What cannot be read at all is one SourceError with its place; what the values mean is judged elsewhere.
"""

from dataclasses import dataclass

from appliance.model.json_reader import read_json
from appliance.model.problems import Finding, Path, Place, Problem, Spot, dotted
from appliance.model.tree import Node, Plain, SourceError, Text, plain
from appliance.model.units import shown
from appliance.model.yaml_reader import read_yaml


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The top level mapping of a file."""

    root: Node

    @property
    def value(self) -> dict[str, Plain]:
        """The plain values, fresh for every caller."""
        value = plain(self.root)
        return value if isinstance(value, dict) else {}

    def place(self, path: Path, spot: Spot = Spot.VALUE) -> Place:
        """Return where the value at a path begins, of its nearest parent where it is not there.

        A mapping is shown by its key, and so is everything that is asked for by Spot.KEY.
        """
        node, key = self.root, self.root.place
        for step in path:
            match node.value, step:
                case dict() as entries, str() if step in entries:
                    key, node = entries[step].place, entries[step].node
                case list() as items, int() if step < len(items):
                    key, node = items[step].place, items[step]
                case _:
                    return key
        return key if spot is Spot.KEY or isinstance(node.value, dict) else node.place

    def problem(self, finding: Finding, *, source: str) -> Problem:
        """Return a finding with its place."""
        place = self.place(finding.path, finding.spot)
        return Problem(
            message=finding.message,
            severity=finding.severity,
            source=source,
            path=dotted(finding.path) or None,
            line=place.line,
            column=place.column,
        )


def read(text: str | bytes) -> Document:
    """Return the document; raises SourceError."""
    characters = _decoded(text) if isinstance(text, bytes) else text
    root = _root(characters.removeprefix("\ufeff"))
    if root is None or root.value is None:
        raise SourceError(
            "the file is empty: `{}` is a configuration that does nothing", Place(line=1, column=1)
        )
    if not isinstance(root.value, dict):
        raise SourceError(
            f"the file must hold a mapping (`pools: ...`), not {shown(plain(root))}", root.place
        )
    return Document(root=root)


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        before = data[: error.start].decode()
        message = f"not UTF-8: the byte 0x{data[error.start]:02x}"
        raise SourceError(message, Text(before).at(len(before))) from error


def _root(text: str) -> Node | None:
    """Read JSON where it is JSON, else YAML; of two failures the one that came further is meant."""
    if not text.lstrip().startswith("{"):
        return read_yaml(text)
    try:
        return read_json(text)
    except SourceError as json_error:
        return _yaml_after(text, json_error)


def _yaml_after(text: str, json_error: SourceError) -> Node | None:
    try:
        return read_yaml(text)
    except SourceError as yaml_error:
        if _order(json_error.place) > _order(yaml_error.place):
            raise json_error from None
        raise


def _order(place: Place) -> tuple[int, int]:
    return place.line, place.column
