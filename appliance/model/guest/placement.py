"""Decides whether a configuration made from properties may replace the present file."""

from dataclasses import dataclass
from enum import StrEnum


class Placement(StrEnum):
    """What to do with it.

    WRITE: write the file. SAME: it has this content already. EDITED: a person has changed it and the
    properties are the same, so it stays. BESIDE: a person has changed it and the properties are new, so the
    new file is written beside it. OVERWRITE: keep a copy of the edited file and write the new one in its
    place.
    """

    WRITE = "write"
    SAME = "same"
    EDITED = "edited"
    BESIDE = "beside"
    OVERWRITE = "overwrite"


class Choice(StrEnum):
    """The operator's wish for an edited file: none, overwrite it, or keep it."""

    NONE = "none"
    OVERWRITE = "overwrite"
    KEEP = "keep"


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """Digests of a file and of the properties that it was made from."""

    yaml: str
    properties: str


def placement(
    *, wanted: Placed, current: str | None, last: Placed | None, intended: Placed | None, choice: Choice
) -> Placement:
    """Return what to do with the wanted file; `current` is the digest of the present one, or None.

    `intended` was being written when `last` was stored: after a power failure the file may be either.
    """
    if current is None:
        return Placement.WRITE
    if current == wanted.yaml:
        return Placement.SAME
    if any(each is not None and current == each.yaml for each in (last, intended)):
        return Placement.WRITE
    if choice is Choice.OVERWRITE:
        return Placement.OVERWRITE
    known = last is not None and (wanted.yaml == last.yaml or wanted.properties == last.properties)
    return Placement.EDITED if known or choice is Choice.KEEP else Placement.BESIDE
