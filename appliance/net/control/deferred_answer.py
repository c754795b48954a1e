"""An answer to a control question that is not known yet."""

from collections.abc import Callable

from appliance.wire.lines.control import Answer


class DeferredAnswer:
    """An answer that is given later, to everybody who waits for it. Only the first one counts."""

    def __init__(self) -> None:
        self._answer: Answer | None = None
        self._sends: list[Callable[[Answer], None]] = []

    def resolve(self, answer: Answer) -> None:
        """Give the answer to all who wait, and to those who will."""
        if self._answer is None:
            self._answer = answer
            for send in self._sends:
                send(answer)

    def deliver(self, send: Callable[[Answer], None]) -> None:
        """Call `send` with the answer, at once where it is known already."""
        if self._answer is None:
            self._sends.append(send)
        else:
            send(self._answer)
