"""What a reader returns: each line of a file, unless empty or a comment, has an outcome."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal

from appliance.model.document.tree import Node
from appliance.model.messages.problems import FilePosition

HttpSections = Literal["refuse", "skip"]
"""What happens to sections that read HTTP: an error each, or they are left to HAProxy."""

INGRESS_PORTS: Final = frozenset((80, 443))
"""Ports whose frontends belong to `ingress`; all others belong to `api`."""

_MOST_ADDRESSES: Final = 8
"""Addresses named in one sentence."""


class Outcome(StrEnum):
    """The outcome of a line.

    KEPT means the same here. CHANGED means nearly the same, and the reason names the difference. IGNORED is
    safe to leave out here, and the reason says why. REFUSED cannot be translated: the reason says why, and
    what to write instead.
    """

    KEPT = "kept"
    CHANGED = "changed"
    IGNORED = "ignored"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class LineOutcome:
    """One line of a file: where it is, its text, and its outcome.

    `place` is the first word of the line, or the word that is refused; its `source` names the file. `reason`
    is None only for KEPT. One line of a file has several outcomes if its words have different ones (`server`
    with a keyword that is refused). `left_out_with` is the start of the block that is left out as a whole,
    with this line.
    """

    place: FilePosition
    text: str
    outcome: Outcome
    reason: str | None = None
    left_out_with: FilePosition | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A suggested improvement to the file. The translation itself never contains it.

    `name` is stable, for machines; `place` is the line it is about. `example` is YAML to write instead.
    """

    name: str
    message: str
    place: FilePosition | None = None
    example: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftSection:
    """A section that reads HTTP and is left to HAProxy; `addresses` are those it listens on."""

    kind: str
    name: str
    place: FilePosition
    addresses: tuple[str, ...] = ()

    @property
    def unserved(self) -> str:
        """Return where no frontend accepts clients without HAProxy; "" for a section that accepts none."""
        if not self.addresses:
            return ""
        more = len(self.addresses) - _MOST_ADDRESSES
        rest = (f"{more} more",) if more > 0 else ()
        return f"this appliance does not listen on {', '.join((*self.addresses[:_MOST_ADDRESSES], *rest))}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """The configuration equivalent to a file, and the outcome of each line.

    `root` is a mapping in our own format (`pools`, `api`, `virtual_ips` ...); each key and value in it has
    its place in the foreign file, so that every later problem points there. `left` are the sections that
    HAProxy continues to serve, `remainder` is the haproxy.cfg for that, "" without them.
    """

    root: Node
    lines: tuple[LineOutcome, ...]
    proposals: tuple[Proposal, ...] = ()
    left: tuple[LeftSection, ...] = ()
    remainder: str = ""

    @property
    def refused(self) -> tuple[LineOutcome, ...]:
        """The refused lines."""
        return tuple(each for each in self.lines if each.outcome is Outcome.REFUSED)
