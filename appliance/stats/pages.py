"""The paths of the HTTP server: a small WSGI application.

Pages are made from the current figures and cached with them, so that a page is made once, however many
clients ask. Answers are complete and have a length, which lets connections be reused.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Final

import msgspec

from appliance.core.haproxy.process import process_metrics
from appliance.core.metrics.appliance import appliance_metrics
from appliance.core.metrics.haproxy import haproxy_metrics
from appliance.core.metrics.keepalived import keepalived_metrics
from appliance.core.metrics.programs import program_metrics
from appliance.core.metrics.shared_ips import shared_ip_metrics
from appliance.core.metrics.sources import source_metrics
from appliance.core.metrics.sync import sync_metrics
from appliance.core.status.status import Status, json_schema
from appliance.model.program_names import PROXIES
from appliance.model.snapshot.snapshot import Stats
from appliance.stats.access import WebAccess
from appliance.stats.changes import Changes, ForeignFormError, MalformedFormError
from appliance.stats.figures import Figures, LatestFigures
from appliance.stats.page.page import HOME, STATIC, page, static
from appliance.stats.servers import NotDone
from appliance.wire.exposition import Exposition, Format, Metric, wanted_format
from appliance.wire.haproxy.statistics import csv_text


def serves(status: Status, pool: str | None) -> bool:
    """Return whether workers of each group accept, and a server of a pool is up, if one is needed."""
    groups = [each for each in status.programs if each.name in PROXIES and each.expected]
    return all(each.workers for each in groups) and (
        pool is None or any(each.up for each in status.pools if each.name == pool)
    )


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
_PAGES: Final = ("/", HOME, "/stats", "/haproxy")
"""Paths of the page: the usual values of HAProxy's `stats uri`."""

_CSV: Final = ";csv"
_HTML: Final = "text/html; charset=utf-8"
_READ: Final = frozenset({"GET", "HEAD"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """One answer."""

    status: HTTPStatus = HTTPStatus.OK
    type: str = "text/plain; charset=utf-8"
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = field(default=())


class Pages:
    """The application. `access` and `stats` return the current settings.

    `on_denied` is called for clients without the right password. `changes` executes the forms of the page.
    """

    def __init__(
        self,
        figures: LatestFigures,
        access: Callable[[], WebAccess],
        stats: Callable[[], Stats],
        changes: Changes,
        *,
        on_denied: Callable[[str], None],
    ) -> None:
        self._changes = changes
        self._figures = figures
        self._access = access
        self._stats = stats
        self._on_denied = on_denied
        self._expositions = {form: Exposition(form) for form in Format}
        self._pages: Mapping[str, Callable[[Environment], Response]] = {
            "/metrics": self._metrics,
            "/api/v1/status": self._status,
            "/api/v1/schema": _schema,
            **dict.fromkeys(_PAGES, self._page),
            **{f"/static/{name}": partial(_static, name) for name in STATIC},
        }

    def __call__(self, environment: Environment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request, as WSGI has it (PEP 3333)."""
        response = self._answer(environment)
        length = ("Content-Length", str(len(response.body)))
        headers = [("Content-Type", response.type), length, *_ALWAYS, *response.headers]
        start_response(f"{response.status.value} {response.status.phrase}", headers)
        return [] if environment["REQUEST_METHOD"] == "HEAD" else [response.body]

    def _answer(self, environment: Environment) -> Response:
        target = _target(environment)
        if target == self._stats().respond and environment["REQUEST_METHOD"] in _READ:
            return self._monitor()
        if not self._access().admits(environment.get("HTTP_AUTHORIZATION", "")):
            if environment.get("HTTP_AUTHORIZATION"):
                self._on_denied(environment.get("REMOTE_ADDR", ""))
            return _refusal(HTTPStatus.UNAUTHORIZED, ("WWW-Authenticate", 'Basic realm="statistics"'))
        path = environment.get("PATH_INFO", "")
        if environment["REQUEST_METHOD"] == "POST" and path in self._changes:
            return self._change(environment, path)
        if environment["REQUEST_METHOD"] not in _READ:
            return _refusal(HTTPStatus.METHOD_NOT_ALLOWED, ("Allow", "GET, HEAD"))
        # HAProxy's options follow its path, even if that has a query: `/haproxy?stats;csv;norefresh`.
        if _CSV in target:
            return self._csv()
        page = self._pages.get(path.partition(";")[0])
        if page is None and any(map(target.startswith, self._stats().paths)):
            page = self._page
        return page(environment) if page is not None else _refusal(HTTPStatus.NOT_FOUND)

    def _monitor(self) -> Response:
        """Answer as HAProxy does for `monitor-uri`, without a password: the answer reveals nothing else."""
        if serves(self._figures.get().status, self._stats().needs):
            return Response(type="text/html", body=_monitored("200 OK", "Service ready."))
        body = _monitored("503 Service Unavailable", "No server is available.")
        return Response(status=HTTPStatus.SERVICE_UNAVAILABLE, type="text/html", body=body)

    def _metrics(self, environment: Environment) -> Response:
        form = wanted_format(environment.get("HTTP_ACCEPT", ""))
        return Response(
            type=form.value,
            body=self._figures.page(form.name, lambda each: self._expositions[form].encode(_metrics(each))),
        )

    def _status(self, _: Environment) -> Response:
        body = self._figures.page("status", lambda each: each.status.json())
        return Response(type="application/json", body=body)

    def _page(self, _: Environment) -> Response:
        access = self._access()
        # The token is in it: a page made with other settings is another page.
        body = self._figures.page(
            f"page {access.token}", lambda each: page(each, self._figures.events(), access)
        )
        return Response(type=_HTML, body=body)

    def _change(self, environment: Environment, path: str) -> Response:
        """Do what a form of our page asks for, if that is allowed; then redirect to the page."""
        access = self._access()
        if not access.admin:
            return _refusal(HTTPStatus.FORBIDDEN)
        try:
            self._changes.make(path, environment, token=access.token)
        except MalformedFormError:
            return _refusal(HTTPStatus.BAD_REQUEST)
        except ForeignFormError:
            return _refusal(HTTPStatus.FORBIDDEN)
        except NotDone as error:
            body = page(self._figures.get(), self._figures.events(), access, notice=str(error))
            return Response(status=HTTPStatus.CONFLICT, type=_HTML, body=body)
        return _refusal(HTTPStatus.SEE_OTHER, ("Location", HOME))

    def _csv(self) -> Response:
        # HAProxy sends text/plain, and clients that check it expect that.
        return Response(
            type="text/plain", body=self._figures.page("csv", lambda each: csv_text(each.rows).encode())
        )


def _target(environment: Environment) -> str:
    """Return the request target, with its query, in the form that HAProxy compares."""
    path, query = environment.get("PATH_INFO", ""), environment.get("QUERY_STRING", "")
    return f"{path}?{query}" if query else path


def _monitored(title: str, text: str) -> bytes:
    return f"<html><body><h1>{title}</h1>\n{text}\n</body></html>\n".encode()


def _metrics(figures: Figures) -> Iterator[Metric]:
    status, observations = figures.status, figures.observations
    yield from process_metrics(figures.process)
    yield from haproxy_metrics(figures.rows)
    yield from keepalived_metrics(observations)
    yield from appliance_metrics(status, observations, configuration_hash=figures.configuration_hash)
    yield from program_metrics(status, observations, figures.descriptors)
    yield from source_metrics(status)
    yield from shared_ip_metrics(status, observations)
    yield from sync_metrics(observations)


def _schema(_: Environment) -> Response:
    return Response(type="application/schema+json", body=msgspec.json.encode(json_schema()))


def _static(name: str, _: Environment) -> Response:
    return Response(type=STATIC[name], body=static(name))


def _refusal(status: HTTPStatus, *headers: tuple[str, str]) -> Response:
    return Response(status=status, body=f"{status.phrase}\n".encode(), headers=headers)
