"""Events of the appliance as JSON lines: on the boards of programs that report them, and in the kept file."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

import msgspec

from appliance.model.operator_events import OperatorEvent

LONGEST: Final = 4096
"""Most bytes of a line; longer texts are cut."""

_SUBJECT: Final = 160  # characters, of at most four bytes each
_DETAIL: Final = 300
_WORD: Final = 80
_DECODER: Final = msgspec.json.Decoder(OperatorEvent)


def encode(event: OperatorEvent) -> bytes:
    """Return the line of an event, with its end."""
    return msgspec.json.encode(_clean(event)) + b"\n"


def decode(data: bytes) -> Iterator[OperatorEvent]:
    """Yield the events in lines; unreadable and incomplete lines are skipped."""
    for line in data.split(b"\n"):
        if not line or len(line) > LONGEST:
            continue
        try:
            yield _clean(_DECODER.decode(line))
        except (ValueError, RecursionError):  # msgspec's errors are ValueErrors
            continue


def newest(lines: Iterable[bytes], limit: int) -> bytes:
    """Return the newest lines, from the end, that fit into `limit` bytes together."""
    kept: list[bytes] = []
    room = limit
    for line in reversed(list(lines)):
        room -= len(line)
        if room < 0:
            break
        kept.append(line)
    return b"".join(reversed(kept))


def _clean(event: OperatorEvent) -> OperatorEvent:
    """Return an event whose texts can be shown anywhere, and are not too long."""
    return replace(
        event,
        program=_text(event.program, _WORD),
        subject=_text(event.subject, _SUBJECT),
        before=_text(event.before, _WORD),
        after=_text(event.after, _WORD),
        cause=_text(event.cause, _SUBJECT),
        detail=_text(event.detail, _DETAIL),
        id=_text(event.id, _WORD),
    )


def _text(text: str, longest: int) -> str:
    """Return a text on one line, without terminal control characters; dots mark a cut end."""
    shown = text if text.isprintable() else "".join(each if each.isprintable() else " " for each in text)
    return shown if len(shown) <= longest else f"{shown[: longest - 3]}..."
