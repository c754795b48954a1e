"""The order of keys in a configuration that we write: that of the documentation; names keep theirs."""

from collections.abc import Iterator
from typing import get_args, get_origin

from msgspec.structs import replace

from appliance.model.config.configuration import Config
from appliance.model.config.section import Section, behind_names
from appliance.model.document.tree import Node


def in_order(root: Node) -> Node:
    """Return a configuration with the keys of each section in the order in which `model.config` has them."""
    return _section(root, Config)


def _section(node: Node, kind: type[Section]) -> Node:
    if not isinstance(node.value, dict):
        return node
    fields = {field.alias or name: field.annotation for name, field in kind.model_fields.items()}
    known = [key for key in fields if key in node.value]
    others = [key for key in node.value if key not in fields]
    entries = {
        key: replace(entry, node=_below(entry.node, fields.get(key, behind_names(kind))))
        for key, entry in ((key, node.value[key]) for key in (*known, *others))
    }
    return Node(place=node.place, value=entries)


def _below(node: Node, annotation: object) -> Node:
    kind = next(_sections(annotation), None)
    if kind is None or not isinstance(node.value, dict):
        return node
    if not _is_mapping_of_names(annotation):
        return _section(node, kind)
    entries = {key: replace(entry, node=_section(entry.node, kind)) for key, entry in node.value.items()}
    return Node(place=node.place, value=entries)


def _is_mapping_of_names(annotation: object) -> bool:
    return get_origin(annotation) is dict


def _sections(annotation: object) -> Iterator[type[Section]]:
    """Yield the sections that an annotation names, also within `X | None` and `dict[Name, X]`."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        yield annotation
    for each in get_args(annotation):
        yield from _sections(each)
