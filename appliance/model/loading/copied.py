"""Builds a part of a snapshot from a section of the file: a key with the same name in both is copied."""

from dataclasses import fields
from typing import Any, TypeVar

from appliance.model.config.section import Section

_Part = TypeVar("_Part")


def copied(kind: type[_Part], given: Section, /, **decided: object) -> _Part:
    """Return a `kind` with the fields of `decided`, and all others as the section has them.

    Raises AttributeError for a field that neither has. mypy does not see the types of copied fields: reading
    the snapshot back does (msgspec), and tests do that with every key.
    """
    part: Any = kind
    same = {field.name: getattr(given, field.name) for field in fields(part) if field.name not in decided}
    return kind(**same, **decided)
