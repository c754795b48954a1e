"""Messages from threads to the greenlets of the main thread, in order of arrival."""

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from gevent import get_hub

_Message = TypeVar("_Message")


class Mailbox(Generic[_Message]):
    """`post` is for any thread; `receive` is called in the hub of the thread that created the mailbox."""

    def __init__(self, receive: Callable[[_Message], None]) -> None:
        self._receive = receive
        self._waiting: deque[_Message] = deque()
        self._bell = get_hub().loop.async_()
        self._bell.start(self._deliver)

    def post(self, message: _Message) -> None:
        """Add a message."""
        self._waiting.append(message)
        self._bell.send()

    def close(self) -> None:
        """Stop delivering messages."""
        self._bell.stop()

    def _deliver(self) -> None:
        while self._waiting:
            self._receive(self._waiting.popleft())
