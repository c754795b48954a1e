"""Why an API server gave no usable answer."""

from enum import StrEnum


class Failure(StrEnum):
    """The kinds of failure, as log and status show them."""

    UNREACHABLE = "unreachable"
    CERTIFICATE = "certificate"
    SILENT = "silent"
    NOT_HTTP = "not-http"
    TOO_LARGE = "too-large"
    NOT_UNDERSTOOD = "not-understood"
    BUSY = "busy"
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    MISSING = "missing"
    REFUSED = "refused"
    EXPIRED = "expired"
    ERROR = "error"
    INTERNAL = "internal"


class ApiError(Exception):
    """One request failed; `retry_after` is the seconds to wait that the server requests, None for none."""

    def __init__(self, failure: Failure, message: str, *, retry_after: float | None = None) -> None:
        self.failure = failure
        self.message = message
        self.retry_after = retry_after
        super().__init__(f"{failure}: {message}")


class AccessError(Exception):
    """The files with our credentials or the API's CA cannot be used; says which and why."""
