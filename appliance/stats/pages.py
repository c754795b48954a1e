"""What is behind each path of the HTTP server: a small WSGI application.

Pages are made of the figures of the moment and kept with them, so that a page costs what one of its kind
costs, however many ask. Answers are whole and have a length, which lets connections be used again.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

import msgspec

from appliance.core.haproxy.process import process_metrics
from appliance.core.metrics.appliance import appliance_metrics
from appliance.core.metrics.haproxy import haproxy_metrics
from appliance.core.metrics.keepalived import keepalived_metrics
from appliance.core.status.status import Status
from appliance.stats.access import WebAccess
from appliance.stats.figures import Figures, LatestFigures
from appliance.wire.exposition import Format, encode, wanted_format
from appliance.wire.haproxy.statistics import csv_text

Environment = Mapping[str, str]
StartResponse = Callable[[str, list[tuple[str, str]]], object]

_POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_ALWAYS: Final = (
    ("Cache-Control", "no-cache"),
    ("Content-Security-Policy", _POLICY),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
)
_CSV: Final = ";csv"
_READ: Final = frozenset({"GET", "HEAD"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """One answer."""

    status: HTTPStatus = HTTPStatus.OK
    type: str = "text/plain; charset=utf-8"
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = field(default=())


class Pages:
    """The application. `access` returns what holds now; `on_denied` is told of who had no right password."""

    def __init__(
        self,
        figures: LatestFigures,
        access: Callable[[], WebAccess],
        *,
        on_denied: Callable[[str], None],
    ) -> None:
        self._figures = figures
        self._access = access
        self._on_denied = on_denied
        self._pages: Mapping[str, Callable[[Environment], Response]] = {
            "/metrics": self._metrics,
            "/api/v1/status": self._status,
            "/api/v1/schema": _schema,
        }

    def __call__(self, environment: Environment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request, as WSGI has it (PEP 3333)."""
        response = self._answer(environment)
        length = ("Content-Length", str(len(response.body)))
        headers = [("Content-Type", response.type), length, *_ALWAYS, *response.headers]
        start_response(f"{response.status.value} {response.status.phrase}", headers)
        return [] if environment["REQUEST_METHOD"] == "HEAD" else [response.body]

    def _answer(self, environment: Environment) -> Response:
        if not self._access().admits(environment.get("HTTP_AUTHORIZATION", "")):
            if environment.get("HTTP_AUTHORIZATION"):
                self._on_denied(environment.get("REMOTE_ADDR", ""))
            return _refusal(HTTPStatus.UNAUTHORIZED, ("WWW-Authenticate", 'Basic realm="statistics"'))
        if environment["REQUEST_METHOD"] not in _READ:
            return _refusal(HTTPStatus.METHOD_NOT_ALLOWED, ("Allow", "GET, HEAD"))
        path = environment.get("PATH_INFO", "")
        page = self._pages.get(path)
        if page is not None:
            return page(environment)
        if _CSV in path:  # HAProxy's options follow its path: `/haproxy_stats;csv;norefresh`
            return self._csv()
        return _refusal(HTTPStatus.NOT_FOUND)

    def _metrics(self, environment: Environment) -> Response:
        form = wanted_format(environment.get("HTTP_ACCEPT", ""))
        return Response(
            type=form.value, body=self._figures.page(form.name, lambda each: _exposition(each, form))
        )

    def _status(self, _: Environment) -> Response:
        body = self._figures.page("status", lambda each: msgspec.json.encode(each.status))
        return Response(type="application/json", body=body)

    def _csv(self) -> Response:
        # HAProxy says text/plain, and clients that look at it expect that.
        return Response(
            type="text/plain", body=self._figures.page("csv", lambda each: csv_text(each.rows).encode())
        )


def _exposition(figures: Figures, form: Format) -> bytes:
    status, observations = figures.status, figures.observations
    return encode(
        (
            *process_metrics(figures.process),
            *haproxy_metrics(figures.rows),
            *keepalived_metrics(observations.vrrp, expected=bool(status.virtual_ips)),
            *appliance_metrics(status, observations, configuration_hash=figures.configuration_hash),
        ),
        form,
    )


def _schema(_: Environment) -> Response:
    return Response(type="application/schema+json", body=msgspec.json.encode(msgspec.json.schema(Status)))


def _refusal(status: HTTPStatus, *headers: tuple[str, str]) -> Response:
    return Response(status=status, body=f"{status.phrase}\n".encode(), headers=headers)
