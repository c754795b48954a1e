"""BIRD's answers on its control socket (BIRD 2, doc/reply_codes and birdc(1)).

An answer is lines of text. `CODE-text` or ` text` is followed by others, `CODE text` is the last. Codes from
8000 on are errors. The text of protocols is for people; only words that BIRD 2.0 to 2.19 share are read.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

LONGEST: Final = 1 << 18
"""Most bytes of an answer."""

_LINE: Final = re.compile(r"(?P<code>[0-9]{4})(?P<more>[- ])(?P<text>.*)", re.DOTALL)
_FIRST_ERROR: Final = 8000
_PROTOCOL: Final = "1002"
_NUMBER: Final = re.compile(r"[0-9]{1,10}")
_SECONDS: Final = re.compile(r"[0-9]{1,4}\.[0-9]{1,6}")
_ERROR: Final = "Last error:"
_STATE: Final = "BGP state:"
_ADDRESS: Final = "Neighbor address:"
_ROUTES: Final = "Routes:"


class BirdAnswerError(Exception):
    """The bytes are no answer of BIRD."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BirdAnswer:
    """One whole answer: its last code, and all lines without their codes."""

    code: int
    lines: tuple[tuple[str, str], ...]

    @property
    def error(self) -> str:
        """Why BIRD refused a command, "" if it did not."""
        texts = [text for code, text in self.lines if code.isdigit() and int(code) >= _FIRST_ERROR]
        return "; ".join(texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class BgpSession:
    """The session with one neighbour: BGP's state (RFC 4271 section 8.2.2), routes sent, the last error."""

    protocol: str
    state: str = ""
    info: str = ""
    error: str = ""
    exported: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BfdSession:
    """BFD with one neighbour: its state (RFC 5880 section 6.8.1), and the seconds from packet to packet."""

    state: str
    interval: float = 0.0


@dataclass(slots=True)
class AnswerBuffer:
    """Collects the bytes of one answer."""

    _data: bytearray = field(default_factory=bytearray)

    def feed(self, data: bytes) -> BirdAnswer | None:
        """Add bytes; return the answer when it is complete. Raises BirdAnswerError."""
        self._data += data
        if len(self._data) > LONGEST:
            raise BirdAnswerError(f"more than {LONGEST} bytes")
        if not self._data.endswith(b"\n"):
            return None
        lines = list(_lines(bytes(self._data)))
        code, more, _ = lines[-1]
        if more:
            return None
        self._data.clear()
        return BirdAnswer(code=int(code), lines=tuple((code, text) for code, _, text in lines))


def _lines(data: bytes) -> Iterator[tuple[str, bool, str]]:
    """Yield code, whether more follows, and text of each line."""
    code = ""
    for line in data.decode("utf-8", "replace").removesuffix("\n").split("\n"):
        found = _LINE.fullmatch(line)
        if found:
            code = found["code"]
            yield code, found["more"] == "-", found["text"]
        elif line.startswith((" ", "+")) and code:
            yield code, True, line[1:]
        else:
            raise BirdAnswerError(f"the line {line[:80]!r}")


def sessions(answer: BirdAnswer) -> tuple[BgpSession, ...]:
    """Return the BGP sessions in the answer to `show protocols all`."""
    found: list[BgpSession] = []
    current: dict[str, str] | None = None
    for code, text in answer.lines:
        words = text.split()
        if code == _PROTOCOL and words[1:2]:
            if current is not None:
                found.append(_session(current))
            current = {"protocol": words[0], "info": " ".join(words[5:])} if words[1] == "BGP" else None
        elif current is not None:
            key, _, value = text.strip().partition(":")
            current.setdefault(f"{key}:", value.strip())
    if current is not None:
        found.append(_session(current))
    return tuple(found)


def _session(values: dict[str, str]) -> BgpSession:
    exported = next(
        (count for part in values.get(_ROUTES, "").split(",") for count in _counted(part, "exported")), 0
    )
    return BgpSession(
        protocol=values["protocol"],
        state=values.get(_STATE, ""),
        info=values["info"],
        error=values.get(_ERROR, ""),
        exported=exported,
    )


def _counted(text: str, what: str) -> Iterator[int]:
    words = text.split()
    if words[1:] == [what] and _NUMBER.fullmatch(words[0]):
        yield int(words[0])


def bfd_sessions(answer: BirdAnswer) -> dict[str, BfdSession]:
    """Return the sessions of BFD by the neighbour's address, from the answer to `show bfd sessions`."""
    found = {}
    for _, text in answer.lines:
        words = text.split()
        if len(words) >= 5 and words[2] in {"Up", "Down", "Init", "AdminDown"}:
            interval = float(words[4]) if _SECONDS.fullmatch(words[4]) else 0.0
            found[words[0]] = BfdSession(state=words[2], interval=interval)
    return found
