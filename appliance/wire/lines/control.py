"""Control lines between programs: one JSON object a line, questions one way, answers the other way."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Final, TypeVar

import msgspec

_Value = TypeVar("_Value")

QUESTION_LIMIT: Final = 1 << 20
"""Longest question accepted, bytes."""


class ControlError(Exception):
    """The peer sent a line that is no control line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerProblem:
    """One problem; path, line and column if it has a place in `source`, our YAML if that is not given."""

    message: str
    path: str | None = None
    line: int | None = None
    column: int | None = None
    source: str | None = None


def as_values(problems: Iterable[AnswerProblem]) -> list[dict[str, object]]:
    """Return problems in the form of answers and log lines."""
    return [{key: value for key, value in asdict(each).items() if value is not None} for each in problems]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A command and its parameters. The accessors raise ControlError for missing or mistyped ones."""

    command: str
    values: Mapping[str, object] = field(default_factory=dict)

    def text(self, key: str) -> str:
        """Return a string parameter."""
        return self._of(key, str)

    def integer(self, key: str) -> int:
        """Return an integer parameter."""
        return self._of(key, int)

    def integers(self, key: str) -> tuple[int, ...]:
        """Return a parameter of several integers."""
        return self._of(key, tuple[int, ...])

    def number(self, key: str) -> float:
        """Return a number parameter."""
        return self._of(key, float)

    def flag(self, key: str) -> bool:
        """Return a boolean parameter."""
        return self._of(key, bool)

    def places(self, key: str) -> frozenset[tuple[str, int]]:
        """Return a parameter of hosts with ports; empty if missing."""
        return self._of(key, frozenset[tuple[str, int]]) if key in self.values else frozenset()

    def optional_text(self, key: str) -> str | None:
        """Return a string parameter, None if missing."""
        return self._of(key, str) if self.values.get(key) is not None else None

    def _of(self, key: str, kind: type[_Value]) -> _Value:
        try:
            return msgspec.convert(self.values.get(key), kind)
        except msgspec.ValidationError as error:
            raise ControlError(f"{self.command}: {key}: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A program's answer to a question; `errors` is empty exactly when `ok`."""

    ok: bool
    errors: tuple[AnswerProblem, ...] = ()
    values: Mapping[str, object] = field(default_factory=dict)

    @property
    def reason(self) -> str:
        """Return the messages of all errors in one line."""
        return "; ".join(each.message for each in self.errors)


def good(**values: object) -> Answer:
    """Return the answer to a command that has succeeded."""
    return Answer(ok=True, values=values)


def bad(*problems: AnswerProblem | str) -> Answer:
    """Return the answer to a command that was refused or failed: it has changed nothing."""
    errors = tuple(AnswerProblem(message=each) if isinstance(each, str) else each for each in problems)
    return Answer(ok=False, errors=errors)


def encode_question(question: Question) -> bytes:
    """Return the line, with its end."""
    return msgspec.json.encode({"command": question.command, **question.values}) + b"\n"


def decode_question(line: bytes) -> Question:
    """Return the question; raises ControlError."""
    values = _object(line)
    command = values.pop("command", None)
    if not isinstance(command, str):
        raise ControlError("no command")
    return Question(command=command, values=values)


def encode_answer(answer: Answer) -> bytes:
    """Return the line, with its end."""
    fields: dict[str, object] = {"ok": answer.ok}
    if answer.errors:
        fields["errors"] = as_values(answer.errors)
    return msgspec.json.encode({**fields, **answer.values}) + b"\n"


def decode_answer(line: bytes) -> Answer:
    """Return the answer; raises ControlError."""
    values = _object(line)
    ok = values.pop("ok", None)
    errors = values.pop("errors", [])
    if not isinstance(ok, bool):
        raise ControlError("no verdict")
    try:
        problems = msgspec.convert(errors, tuple[AnswerProblem, ...])
    except msgspec.ValidationError as error:
        raise ControlError(str(error)) from error
    return Answer(ok=ok, errors=problems, values=values)


def _object(line: bytes) -> dict[str, object]:
    try:
        return msgspec.json.decode(line, type=dict[str, object])
    except (ValueError, RecursionError) as error:  # msgspec's own errors are ValueErrors
        raise ControlError(str(error)) from error
