"""The dialogue of a check with a server: what to send, what to expect, and how to judge the answer.

The rules are those of HAProxy's `tcp-check send` and `tcp-check expect` (configuration.txt): an expected text
may be anywhere in the data received since the last send. It is missing only once the answer has ended, is
full (LONGEST_ANSWER, HAProxy's `tune.bufsize`) or has `min_recv` bytes. The time limit is the check's.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Final

from appliance.model.byte_pattern import BytePattern, byte_pattern
from appliance.model.messages.quoting import masked, shown
from appliance.model.snapshot.pools import CheckStep
from appliance.wire.checks.pattern_search import PatternSearch

LONGEST_ANSWER: Final = 16_384
"""Bytes of an answer that are searched; the answer to the next send has as many again."""

_LONGEST_QUOTE: Final = 60
_SHORTEST_SECRET: Final = 4


@dataclass(frozen=True, slots=True)
class Send:
    """Send these bytes."""

    data: bytes


class Receive(Enum):
    """Receive, and `feed` the data."""

    MORE = "more"


@dataclass(frozen=True, slots=True)
class Passed:
    """Everything was sent, and every answer was as expected."""


@dataclass(frozen=True, slots=True)
class Missed:
    """An answer is not as expected; `reason` names what is missing, and what came instead."""

    reason: str


Move = Send | Receive | Passed | Missed


@lru_cache(maxsize=256)  # a tenth of a millisecond, in each check of each server
def _pattern(text: str) -> BytePattern:
    return byte_pattern(text)


class _Expectation:
    """What an answer must contain, or must not; it applies to one answer."""

    def __init__(self, step: CheckStep, number: int) -> None:
        self._literal = step.expect.encode() or bytes.fromhex(step.expect_binary)
        self._search = PatternSearch(_pattern(step.expect_rstring)) if step.expect_rstring else None
        self._searched = 0
        self._negate = step.negate
        self._least = max(step.min_recv, len(self._literal), 1)
        self._enough = step.min_recv or None
        self._what = shown(step.expect or step.expect_binary or step.expect_rstring)
        self._at = f"step {number} ({step.comment})" if step.comment else f"step {number}"

    def is_met(self, answer: bytes, *, whole: bool) -> bool | None:
        """Return whether the answer is as expected, None if more data may decide."""
        if len(answer) < self._least and not whole:
            return None
        if not answer:  # a server that closes without a word passes nothing, as in HAProxy
            return False
        if self._has(answer):
            return not self._negate
        if not whole and self._enough is None and not self._given_up:
            return None
        return self._negate and not self._given_up

    def reason(self, answer: bytes, said: Iterable[bytes]) -> str:
        """Return why the answer is not as expected."""
        if self._given_up:
            return f"{self._at}: {self._what} takes too long to be looked for in this answer"
        if not answer:
            return f"{self._at}: nothing came"
        what = f"{self._what} came" if self._negate and self._has(answer) else self._lack
        return f"{self._at}: {what}, {len(answer)} bytes came: {_quoted(answer, said)}"

    @property
    def _lack(self) -> str:
        return f"no end without {self._what}" if self._negate else f"no {self._what}"

    @property
    def _given_up(self) -> bool:
        return self._search is not None and self._search.given_up

    def _has(self, answer: bytes) -> bool:
        if self._search is None:
            return self._literal in answer
        self._search.feed(answer[self._searched :])
        self._searched = len(answer)
        return self._search.found


class Conversation:
    """One dialogue: call `move` for the next action, until it is Passed or Missed."""

    def __init__(self, steps: Iterable[CheckStep]) -> None:
        self._parts: list[bytes | _Expectation] = []
        for number, step in enumerate(steps, start=1):
            self._parts.extend(_parts(step, number))
        self._at = 0
        self._expected: _Expectation | None = None
        self._answer = b""
        self._ended = False
        self._said: list[bytes] = []

    @property
    def ends_by_sending(self) -> bool:
        """Whether the last data is sent, so that the server must still read it."""
        return bool(self._parts) and isinstance(self._parts[-1], bytes)

    @property
    def heard(self) -> bool:
        """Whether anything was received since the last send."""
        return bool(self._answer)

    @property
    def lacks(self) -> str:
        """Return what the answer lacks so far, "" if none is expected."""
        return self._expected.reason(self._answer, self._said) if self._expected else ""

    def move(self) -> Move:
        """Return the next action."""
        while self._at < len(self._parts):
            part = self._parts[self._at]
            if isinstance(part, bytes):
                self._at += 1
                self._expected, self._answer = None, b""
                self._said.append(part)
                return Send(part)
            self._expected = part
            met = part.is_met(self._answer, whole=self._ended or len(self._answer) >= LONGEST_ANSWER)
            if met is None:
                return Receive.MORE
            if not met:
                return Missed(self.lacks)
            self._at += 1
        self._expected = None
        return Passed()

    def feed(self, data: bytes) -> None:
        """Take received data, empty at the end of the stream."""
        self._ended = not data
        self._answer = (self._answer + data)[:LONGEST_ANSWER]


def _parts(step: CheckStep, number: int) -> Iterator[bytes | _Expectation]:
    if step.send or step.send_binary:
        yield step.send.encode() or bytes.fromhex(step.send_binary)
    if step.expect or step.expect_binary or step.expect_rstring:
        yield _Expectation(step, number)


def _quoted(answer: bytes, said: Iterable[bytes]) -> str:
    """Return the beginning of an answer, without what we sent: servers echo commands, even passwords."""
    for word in sorted((word for each in said for word in each.split()), key=len, reverse=True):
        if len(word) >= _SHORTEST_SECRET:
            answer = answer.replace(word, b"***")
    text = answer.decode(errors="replace").strip()
    return shown(masked(text[:_LONGEST_QUOTE], "\ufffd"))
