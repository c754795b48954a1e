"""One connection to one API server: requests with a deadline and a limit, and watches line by line.

It blocks, and is used by one thread; only `abort` may be called by another. Errors are ApiError.

A request has one deadline for all of it: then another thread shuts the connection down, whatever the server
sends, even byte by byte or in a handshake that OpenSSL reads endlessly.
"""

import http.client
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from appliance.model.snapshot.discovery import ApiAddress
from appliance.net.kubernetes.api_access import Access, ApiError, Failure
from appliance.wire.kubernetes.answers import GONE, decode_refusal

_SLICE: Final = 0.01  # seconds of work after which it rests
_REST: Final = 3.0  # multiple of the time that it has worked
_LONGEST: Final = 0.5  # seconds


class WorkShare:
    """The work of the thread that creates it."""

    def __init__(self) -> None:
        self._begun = time.thread_time()

    def rest(self) -> None:
        """Rest if there was enough work since the last time."""
        worked = time.thread_time() - self._begun
        if worked >= _SLICE:
            time.sleep(min(_REST * worked, _LONGEST))
            self._begun = time.thread_time()


CONNECT: Final = 3.0
"""Seconds to connect, and as many for the handshake: then the next server is asked."""

LIST: Final = 15.0
"""Seconds for a page of a list."""

WATCH: Final = 10
"""Seconds after which the server ends a watch: its end, and not a bookmark, is the sign of life."""

SILENCE: Final = 13.0
"""Seconds after which a watch that has not ended means a dead server."""

_MOST_PAGE: Final = 32 << 20  # bytes; 250 Nodes with the longest status that a kubelet sends are some 10 MB
_MOST_LINE: Final = 4 << 20  # bytes; etcd holds no object of more than 1.5 MB
_MOST_REFUSAL: Final = 64 << 10
_CHUNK: Final = 64 << 10
_OK: Final = 200
_FAILURES: Final = {
    401: Failure.UNAUTHORIZED,
    403: Failure.FORBIDDEN,
    404: Failure.MISSING,
    GONE: Failure.EXPIRED,
    429: Failure.BUSY,
}


class ApiConnection:
    """A connection opened on demand, and kept between requests."""

    def __init__(self, address: ApiAddress, access: Access) -> None:
        self.address = address
        self.digest = access.digest
        self._http = _NamedConnection(address, access)
        self._share = WorkShare()

    def get(self, path: str, *, token: str | None) -> bytes:
        """Return the body of an answer; raises ApiError."""
        with self._asked(path, token, LIST) as response:
            return self._all(response, most=_MOST_PAGE)

    def lines(self, path: str, *, token: str | None) -> Iterator[list[bytes]]:
        """Yield the lines of a watch, in groups as received; raises ApiError."""
        with self._asked(path, token, SILENCE) as response:
            rest = bytearray()
            while chunk := self._some(response):
                lines, rest = _lines(rest, chunk)
                if max(map(len, (*lines, rest))) > _MOST_LINE:
                    raise ApiError(Failure.TOO_LARGE, f"an event of more than {_MOST_LINE} bytes")
                if whole := [line for line in lines if line]:
                    yield whole
            if rest:
                raise ApiError(Failure.NOT_HTTP, "the watch ended in the middle of an event")

    def abort(self) -> None:
        """Abort the request in progress, from another thread."""
        self._http.abort()

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        self._http.close()

    @contextmanager
    def _asked(self, path: str, token: str | None, seconds: float) -> Iterator[http.client.HTTPResponse]:
        """Give a request's answer with status 200, at most `within` seconds after it; raises ApiError."""
        headers = {"Accept": "application/json", "User-Agent": "load-balancer-appliance"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        try:
            with self._http.within(seconds):
                if self._http.sock is None:
                    self._http.connect()
                self._http.request("GET", path, headers=headers)
                response = self._http.getresponse()
                if response.status != _OK:
                    raise self._refusal(response)
                yield response
                response.close()  # read to its end, which http.client does not always notice
        except ApiError:
            self.close()
            raise
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.close()
            raise _api_error(TimeoutError() if self._http.is_late else error) from error
        except GeneratorExit:
            self.close()
            raise

    def _some(self, response: http.client.HTTPResponse) -> bytes:
        """Return received bytes, b"" at the end; limits the thread to its share of a processor."""
        self._share.rest()
        data = response.read1(_CHUNK)
        if self._http.is_late:
            raise TimeoutError
        return data

    def _all(self, response: http.client.HTTPResponse, *, most: int) -> bytes:
        chunks, size = [], 0
        while chunk := self._some(response):
            size += len(chunk)
            if size > most:
                raise ApiError(Failure.TOO_LARGE, f"an answer of more than {most} bytes")
            chunks.append(chunk)
        return b"".join(chunks)

    def _refusal(self, response: http.client.HTTPResponse) -> ApiError:
        body = self._all(response, most=_MOST_REFUSAL)
        said = decode_refusal(body, status=response.status)
        failure = _FAILURES.get(response.status, Failure.ERROR if response.status >= 500 else Failure.REFUSED)
        return ApiError(failure, said.message, retry_after=_seconds(response.getheader("Retry-After")))


class _NamedConnection(http.client.HTTPSConnection):
    """A connection to an address whose certificate must have another name than the address."""

    def __init__(self, address: ApiAddress, access: Access) -> None:
        super().__init__(address.host, address.port, timeout=CONNECT, context=access.context)
        self._access = access
        self._aborted = False
        self._request: object = None
        self.is_late = False

    def connect(self) -> None:
        """Connect within the time for it, and check the name."""
        if self._aborted:
            raise ConnectionAbortedError("stopped")
        plain = socket.create_connection((self.host, self.port), timeout=CONNECT)
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.sock = self._access.context.wrap_socket(
                plain, server_hostname=self._access.server_name, do_handshake_on_connect=False
            )
        except BaseException:
            plain.close()
            raise
        self.sock.do_handshake()
        self.sock.settimeout(None)  # `within` ends it

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Shut the connection down after this time, and mark it as late."""
        request = self._request = object()
        self.is_late = False
        timer = threading.Timer(seconds, self._late, (request,))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            self._request = None
            timer.cancel()

    def abort(self) -> None:
        """Wake the reader or writer."""
        self._aborted = True
        self._shut_down()

    def _late(self, request: object) -> None:
        if self._request is request:
            self.is_late = True
            self._shut_down()

    def _shut_down(self) -> None:
        with suppress(OSError, TypeError):  # it is not connected
            # Not the method of SSLSocket, which drops the session that another thread reads from.
            socket.socket.shutdown(self.sock, socket.SHUT_RDWR)


def _lines(begun: bytearray, chunk: bytes) -> tuple[list[bytes], bytearray]:
    """Return the lines that a chunk completes, and the start of the next one."""
    first, end, rest = chunk.partition(b"\n")
    begun += first
    if not end:
        return [], begun
    *others, last = rest.split(b"\n")
    return [bytes(begun), *others], bytearray(last)


def _api_error(error: Exception) -> ApiError:
    match error:
        case ssl.SSLCertVerificationError():
            return ApiError(Failure.CERTIFICATE, error.verify_message)
        case TimeoutError():
            return ApiError(Failure.SILENT, "no answer in time")
        case OSError():
            return ApiError(Failure.UNREACHABLE, error.strerror or str(error) or type(error).__name__)
    return ApiError(Failure.NOT_HTTP, str(error) or type(error).__name__)


def _seconds(retry_after: str | None) -> float | None:
    """Return the seconds of Retry-After (RFC 9110 section 10.2.3); a date is not used by API servers."""
    text = (retry_after or "").strip()
    return float(text) if text.isascii() and text.isdecimal() and len(text) < 6 else None
