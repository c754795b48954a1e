"""Whether a configuration that was made from properties may take the place of the one that is there."""

from dataclasses import dataclass
from enum import StrEnum


class Placement(StrEnum):
    """What is done with it.

    WRITE puts it in place, SAME has nothing to do. EDITED leaves a file that a person has changed since, as
    nothing new was said; BESIDE leaves such a file too, and puts the new one beside it. OVERWRITE keeps a
    copy of such a file and puts the new one in place.
    """

    WRITE = "write"
    SAME = "same"
    EDITED = "edited"
    BESIDE = "beside"
    OVERWRITE = "overwrite"


class Choice(StrEnum):
    """What an operator says about a file that was edited: nothing, take the new one, or keep the edited."""

    NONE = "none"
    OVERWRITE = "overwrite"
    KEEP = "keep"


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """Digests of what was put in place last, or kept in its place: the file, and the properties behind it."""

    yaml: str
    properties: str


def placement(
    *, wanted: Placed, current: str | None, last: Placed | None, intended: Placed | None, choice: Choice
) -> Placement:
    """Return what to do with the wanted file; `current` is the digest of what is there, None for nothing.

    `intended` was to come after `last`: where the power failed in between either may be there.
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
