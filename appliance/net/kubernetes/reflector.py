"""A thread that keeps one resource of the cluster's API up to date: list, watch, and repeat.

It asks the servers in turn, from the version that it has, so that the loss of one server needs no new list.
It passes changes to `on_change`, and waits only for the API. A watch ends after ten seconds; otherwise its
connection is dead.
"""

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random
from typing import Final

from appliance.core.discovery.reflection import Reflection, TooManyObjectsError
from appliance.core.discovery.retries import Retries
from appliance.model.snapshot.discovery import ApiAddress, Kubernetes
from appliance.net.kubernetes.api_access import Access, AccessError, ApiAccess, ApiError, Failure
from appliance.net.kubernetes.api_connection import WATCH, ApiConnection
from appliance.wire.kubernetes.answers import GONE, AnswerError, decode_event, decode_page
from appliance.wire.kubernetes.objects import ApiObject
from appliance.wire.kubernetes.requests import Resource

_MOST: Final = 64

_PAGE: Final = 250  # objects of one answer
_MOST_PAGES: Final = 200  # of a list: ten times as many as the largest number of objects needs
_PACE: Final = 1.0  # seconds from one watch to the next
_SLOW: Final = frozenset({Failure.UNAUTHORIZED, Failure.FORBIDDEN, Failure.MISSING, Failure.REFUSED})


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The current objects of a resource, None if unchanged; `server` reported them."""

    reflector: "Reflector"
    server: str
    objects: tuple[ApiObject, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A failed request, or unusable files, with `server` ""."""

    reflector: "Reflector"
    server: str
    reason: str
    message: str


class Reflector:
    """Runs from `start` until `stop`. `on_change` is called from its thread."""

    def __init__(
        self,
        resource: Resource,
        settings: Kubernetes,
        servers: ApiServers,
        on_change: Callable[[Seen | Failed], None],
    ) -> None:
        self.resource = resource
        self._access = ApiAccess(settings)
        self._servers = servers
        self._on_change = on_change
        self._reflection: Reflection[ApiObject] = Reflection()
        self._told = 0
        self._retries = Retries(Random())  # noqa: S311  # it spreads requests, and keeps no secret
        self._connection: ApiConnection | None = None
        self._turn = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"watch {resource.what}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End soon; once the thread has noticed, it sends no more."""
        self._stop.set()
        connection = self._connection
        if connection is not None:
            connection.abort()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                pause = self._step()
            except Exception as error:  # noqa: BLE001  # the boundary: a bug costs one step, and is logged
                pause = self._bug(error)
            self._stop.wait(pause)
        if self._connection is not None:
            self._connection.close()

    def _step(self) -> float:
        """List, or watch until the watch ends; return the seconds to wait before the next step."""
        try:
            access = self._access.read()
        except AccessError as error:
            self._failed("", "access", str(error))
            return self._retries.refused()
        servers = self._servers.to_ask(access.addresses)
        if not servers:
            self._failed("", "access", "no API server is known: set `api`")
            return self._retries.refused()
        connection = self._connected(servers, access)
        try:
            if self._reflection.resource_version is None:
                self._list(connection, access.token)
                return 0.0
            begun = time.monotonic()
            self._watch(connection, access.token)
        except TooManyObjectsError as error:
            return self._too_many(connection, error)
        except (ApiError, AnswerError) as error:
            return self._failure(connection, error, servers=len(servers))
        self._retries.succeeded()
        # Do not ask endlessly a server that ends every watch at once.
        return max(0.0, _PACE - (time.monotonic() - begun))

    def _bug(self, error: Exception) -> float:
        """Report a bug, and start again with a list."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._reflection.forget_version()
        self._failed("", Failure.INTERNAL, f"{type(error).__name__}: {error}")
        return self._retries.failed(servers=1)

    def _connected(self, servers: tuple[ApiAddress, ...], access: Access) -> ApiConnection:
        """Return the existing connection, or one to the server whose turn it is."""
        known = self._connection
        if known is not None and known.digest == access.digest and known.address in servers:
            return known
        if known is not None:
            known.close()
        self._connection = ApiConnection(servers[self._turn % len(servers)], access)
        return self._connection

    def _list(self, connection: ApiConnection, token: str | None) -> None:
        resource, more = self.resource, None
        self._reflection.begin_list()
        for _ in range(_MOST_PAGES):
            body = connection.get(resource.list_path(limit=_PAGE, more=more), token=token)
            page = decode_page(body, resource.kind)
            self._reflection.page(page)
            more = page.more
            if more is None:
                self._seen(connection)
                return
        raise ApiError(Failure.TOO_LARGE, f"a list of more than {_MOST_PAGES} pages")

    def _watch(self, connection: ApiConnection, token: str | None) -> None:
        version = self._reflection.resource_version or ""
        path = self.resource.watch_path(resource_version=version, seconds=WATCH)
        for lines in connection.lines(path, token=token):
            for line in lines:
                refusal = self._reflection.event(decode_event(line, self.resource.kind))
                if refusal is not None:
                    failure = Failure.EXPIRED if refusal.code == GONE else Failure.ERROR
                    raise ApiError(failure, refusal.message)
            self._seen(connection)
        self._seen(connection)

    def _too_many(self, connection: ApiConnection, error: TooManyObjectsError) -> float:
        """Ask less often: all servers have as many objects, and send 100 MB before they are refused."""
        connection.close()
        self._connection = None
        self._reflection.forget_version()
        self._failed(str(connection.address), Failure.TOO_LARGE, str(error))
        return self._retries.refused()

    def _failure(self, connection: ApiConnection, error: Exception, *, servers: int) -> float:
        connection.close()
        self._connection = None
        if isinstance(error, ApiError) and error.failure is Failure.EXPIRED:
            # The cluster has dropped that version, or has another history: list from any server.
            self._reflection.forget_version()
            self._failed(str(connection.address), error.failure, error.message)
            return self._retries.failed(servers=servers)
        self._turn += 1
        if not isinstance(error, ApiError):
            self._reflection.forget_version()
            self._failed(str(connection.address), Failure.NOT_UNDERSTOOD, str(error))
            return self._retries.failed(servers=servers)
        self._failed(str(connection.address), error.failure, error.message)
        if error.retry_after is not None:
            return self._retries.after(error.retry_after)
        if error.failure in _SLOW:
            return self._retries.refused()
        return self._retries.failed(servers=servers)

    def _seen(self, connection: ApiConnection) -> None:
        self._servers.answered(connection.address)
        changed = self._reflection.changes != self._told
        self._told = self._reflection.changes
        objects = self._reflection.objects if changed else None
        self._send(Seen(reflector=self, server=str(connection.address), objects=objects))

    def _failed(self, server: str, reason: str, message: str) -> None:
        self._send(Failed(reflector=self, server=server, reason=reason, message=message))

    def _send(self, message: Seen | Failed) -> None:
        if not self._stop.is_set():
            self._on_change(message)
