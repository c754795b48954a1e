"""Directives and their blocks, from the statements of a file."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from appliance.model.messages.problems import FilePosition
from appliance.translation.keepalived.ledger import Ledger
from appliance.translation.keepalived.syntax.located_text import Word
from appliance.translation.keepalived.syntax.statements import Statement
from appliance.translation.translation import Outcome

DEEPEST_BLOCK: Final = 20
"""Greatest nesting of blocks; keepalived's own need five."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Directive:
    """A keyword with its further words; `block` is None without a block. `braces` are the braces' places."""

    words: tuple[Word, ...]
    block: "tuple[Directive, ...] | None" = None
    braces: tuple[FilePosition, ...] = ()

    @property
    def keyword(self) -> str:
        """The first word."""
        return self.words[0].text

    @property
    def place(self) -> FilePosition:
        """The place of the keyword."""
        return self.words[0].place

    @property
    def values(self) -> tuple[Word, ...]:
        """The words after the keyword."""
        return self.words[1:]

    @property
    def within(self) -> "tuple[Directive, ...]":
        """The directives in the block."""
        return self.block or ()

    @property
    def places(self) -> tuple[FilePosition, ...]:
        """The places of all lines that belong to it, its own first."""
        return (self.place, *self.braces, *(place for each in self.within for place in each.places))


@dataclass(slots=True, kw_only=True)
class _Frame:
    """A block that is still open; with `words` None it belongs to no directive."""

    words: tuple[Word, ...] | None
    braces: list[FilePosition]
    found: list[Directive] = field(default_factory=list)


def directives(statements: Iterable[Statement], ledger: Ledger) -> tuple[Directive, ...]:
    """Return the directives of a file; unmatched braces are refused in the ledger."""
    frames = [_Frame(words=None, braces=[])]
    for statement in statements:
        place = statement[0].place
        match statement[0].text:
            case "{":
                frames.append(_opened(frames, place, ledger))
            case "}" if len(frames) == 1:
                ledger.change(
                    place, "no block is open here: keepalived continues after it, and so does the appliance"
                )
            case "}":
                frames[-1].braces.append(place)
                _close(frames)
            case _:
                frames[-1].found.append(Directive(words=statement))
    while len(frames) > 1:
        begin = frames[-1].words
        where = begin[0].place if begin else frames[-1].braces[0]
        ledger.change(where, "this block is not closed: it ends with the file, as in keepalived")
        _close(frames)
    return tuple(frames[0].found)


def _opened(frames: list[_Frame], place: FilePosition, ledger: Ledger) -> _Frame:
    """Return the block that a brace opens: that of the directive before it."""
    before = frames[-1].found
    if len(frames) > DEEPEST_BLOCK:
        ledger.refuse(place, f"more than {DEEPEST_BLOCK} blocks are nested")
        return _Frame(words=None, braces=[place])
    if not before or before[-1].block is not None:
        ledger.refuse(place, "there is no directive before this `{`")
        return _Frame(words=None, braces=[place])
    return _Frame(words=before.pop().words, braces=[place])


def _close(frames: list[_Frame]) -> None:
    frame = frames.pop()
    if frame.words is None:
        frames[-1].found += frame.found
        return
    block = Directive(words=frame.words, block=tuple(frame.found), braces=tuple(frame.braces))
    frames[-1].found.append(block)


def dispose(directive: Directive, outcome: Outcome, reason: str, ledger: Ledger) -> None:
    """Note one outcome for a directive and its whole block; a refused block counts as one refusal."""
    ledger.mark([directive.place], outcome, reason)
    belongs = f"belongs to `{directive.keyword}`, line {directive.place.line}"
    if outcome is Outcome.REFUSED:
        ledger.leave_out(directive.places, f"{belongs}, and is left out with it", head=directive.place)
        return
    own = (directive.place.source, directive.place.line)
    inner = [each for each in directive.places if (each.source, each.line) != own]
    ledger.mark(inner, outcome, belongs)
