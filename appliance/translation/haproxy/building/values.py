"""Values of sections on their way into our configuration: each one taken is noted as used."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from appliance.model.document.tree import Plain
from appliance.model.messages.problems import FilePosition
from appliance.translation.haproxy.directives.section import Placed
from appliance.translation.haproxy.text.report import Report
from appliance.translation.tree_builder import TreeBuilder

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Build:
    """The configuration being built, and the report on its lines."""

    tree: TreeBuilder
    report: Report

    def take(self, given: Placed[_Value]) -> _Value:
        """Return a value, and note that its line is used."""
        self.report.use(given.place.line)
        return given.value

    def put(self, path: tuple[str, ...], value: Plain, place: FilePosition) -> None:
        """Set a value at a path, with the place that it comes from."""
        self.tree.put(path, value, place)


def usual(found: Iterable[Placed[_Value]]) -> Placed[_Value] | None:
    """Return the most common value, the first one on a tie; None without values."""
    every = list(found)
    if not every:
        return None
    value, _ = Counter(each.value for each in every).most_common(1)[0]
    return next(each for each in every if each.value == value)
