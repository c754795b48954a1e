"""The commands of a program: which handler answers a line, and how its error becomes an answer.

Both kinds of control servers use it, with greenlets and with one loop. They define the arguments and results
of handlers.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Generic, TypeVar

from appliance.net.control import permissions
from appliance.wire.lines.control import Answer, ControlError, Question, bad, decode_question

HandlerType = TypeVar("HandlerType")
ResultType = TypeVar("ResultType")

OnError = Callable[[str, Exception], None]
"""Receives the place of an error (a command's name, "line", "accept"), and the exception."""


class CommandTable(Generic[HandlerType]):
    """Handlers by the names of their commands; `for_readers` are the read-only commands."""

    def __init__(
        self, handlers: Mapping[str, HandlerType], *, for_readers: Collection[str], on_error: OnError
    ) -> None:
        self._handlers = dict(handlers)
        self._for_readers = frozenset(for_readers)
        self._on_error = on_error

    def answer(
        self, line: bytes, *, owner: bool, run: Callable[[HandlerType, Question], ResultType]
    ) -> ResultType | Answer:
        """Return what `run` returns for the line's handler and question, or an error answer.

        A handler's ControlError is the client's mistake, and is the answer. Any other error is a bug, which
        is answered and reported. Raises ControlError if the line is not a question.
        """
        question = decode_question(line)
        handler = self._handlers.get(question.command)
        if handler is None:
            return bad(f"unknown command {question.command!r}; known: {', '.join(sorted(self._handlers))}")
        if not owner and (refusal := permissions.refusal(question.command, self._for_readers)):
            return refusal
        try:
            return run(handler, question)
        except ControlError as error:
            return bad(str(error))
        except Exception as error:  # noqa: BLE001  # a bug in one command must not end the program; it is reported
            self._on_error(question.command, error)
            return bad(f"{question.command}: {type(error).__name__}: {error}")
