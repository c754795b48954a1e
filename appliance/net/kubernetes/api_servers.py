"""The API servers to ask: the operator's, and the masters found since."""

import threading
from collections.abc import Iterable
from typing import Final

from appliance.model.snapshot.discovery import ApiAddress

_MOST: Final = 64


class ApiServers:
    """A list that one thread replaces and others read. The last server that answered comes first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: tuple[ApiAddress, ...] = ()
        self._good: ApiAddress | None = None

    def found(self, addresses: Iterable[ApiAddress]) -> None:
        """Replace the masters that were found."""
        with self._lock:
            self._found = tuple(dict.fromkeys(addresses))[:_MOST]

    def answered(self, address: ApiAddress) -> None:
        """Note which server answered."""
        with self._lock:
            self._good = address

    def to_ask(self, given: Iterable[ApiAddress]) -> tuple[ApiAddress, ...]:
        """Return the servers in the order to ask; `given` are the operator's."""
        with self._lock:
            known = dict.fromkeys((*given, *self._found))
            first = (self._good,) if self._good in known else ()
            return tuple(dict.fromkeys((*first, *known)))[:_MOST]
