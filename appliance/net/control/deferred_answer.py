"""A control question's answer that comes later."""

from collections.abc import Callable

from appliance.wire.lines.control import Answer


class DeferredAnswer:
    """An answer given later, to all who wait for it. Only the first one counts."""

    def __init__(self) -> None:
        self._answer: Answer | None = None
        self._sends: list[Callable[[Answer], None]] = []

    def resolve(self, answer: Answer) -> None:
        """Give the answer to all present and future waiters."""
        if self._answer is None:
            self._answer = answer
            for send in self._sends:
                send(answer)

    def deliver(self, send: Callable[[Answer], None]) -> None:
        """Call `send` with the answer, at once if there is one."""
        if self._answer is None:
            self._sends.append(send)
        else:
            send(self._answer)
