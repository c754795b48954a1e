"""A call in a child process: of its work nothing stays in the memory of this process but the result."""

import os
import pickle
import sys
from collections.abc import Callable
from typing import Generic, NoReturn, TypeVar

_Result = TypeVar("_Result")


class ChildCall(Generic[_Result]):
    """A call that runs in a fork of this process, which has one thread, while this process continues.

    Its result must be one that pickle takes, as must those of its exceptions that are `expected`.
    """

    def __init__(
        self, call: Callable[[], _Result], *, expected: type[Exception] | tuple[type[Exception], ...] = ()
    ) -> None:
        self._answer, write = os.pipe2(os.O_CLOEXEC)
        self._child = os.fork()
        if self._child == 0:
            _answer(call, expected, write)
        os.close(write)

    def result(self) -> _Result:
        """Wait for the result and return it; raise what the call raised, if that was expected."""
        with os.fdopen(self._answer, "rb") as file:
            answer = file.read()
        os.waitpid(self._child, 0)
        if not answer:
            raise ChildProcessError("the call failed, as its child has written")
        error, result = pickle.loads(answer)  # noqa: S301  # of this program's own child
        if error is not None:
            raise error
        returned: _Result = result
        return returned


def _answer(
    call: Callable[[], object], expected: type[Exception] | tuple[type[Exception], ...], descriptor: int
) -> NoReturn:
    """Write the outcome and end. Nothing is written if the call fails unexpectedly."""
    status = 1
    try:
        try:
            answer = pickle.dumps((None, call()))
        except expected as error:
            answer = pickle.dumps((error, None))
        with os.fdopen(descriptor, "wb") as file:
            file.write(answer)
        status = 0
    except BaseException:  # noqa: BLE001  # the end of the process, whatever it was
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(status)
