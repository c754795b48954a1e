"""What is behind each path of the HTTP server: a small WSGI application.

Pages are made of the figures of the moment and kept with them, so that a page costs what one of its kind
costs, however many ask. Answers are whole and have a length, which lets connections be used again.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from hmac import compare_digest
from http import HTTPStatus
from typing import BinaryIO, Final
from urllib.parse import parse_qsl

import msgspec

from appliance.core.haproxy.process import process_metrics
from appliance.core.metrics.appliance import appliance_metrics
from appliance.core.metrics.haproxy import haproxy_metrics
from appliance.core.metrics.keepalived import keepalived_metrics
from appliance.core.metrics.programs import program_metrics
from appliance.core.metrics.sources import source_metrics
from appliance.core.status.status import Status
from appliance.model.paths import Paths
from appliance.model.server_states import AdminState
from appliance.stats import servers
from appliance.stats.access import WebAccess
from appliance.stats.figures import Figures, LatestFigures
from appliance.stats.page import STATIC, page, static
from appliance.stats.servers import NotDone
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
_PAGES: Final = ("/", "/haproxy_stats", "/stats", "/haproxy")
"""Paths of the page: what `stats uri` of HAProxy is in the files that people have."""

_LONGEST_FORM: Final = 4096
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
    """The application. `access` returns what holds now.

    `on_denied` is told of clients without the right password, `on_change` of servers that somebody has put
    into another state.
    """

    def __init__(
        self,
        figures: LatestFigures,
        access: Callable[[], WebAccess],
        paths: Paths,
        *,
        on_denied: Callable[[str], None],
        on_change: Callable[[str, str, AdminState], None],
    ) -> None:
        self._paths = paths
        self._on_change = on_change
        self._figures = figures
        self._access = access
        self._on_denied = on_denied
        self._pages: Mapping[str, Callable[[Environment], Response]] = {
            "/metrics": self._metrics,
            "/api/v1/status": self._status,
            "/api/v1/schema": _schema,
            **dict.fromkeys(_PAGES, self._page),
            **{f"/static/{name}": partial(_static, name) for name in STATIC},
        }
        self._changes: Mapping[str, Callable[[Mapping[str, str]], Response]] = {
            "/servers": self._change_server
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
        path = environment.get("PATH_INFO", "")
        if environment["REQUEST_METHOD"] == "POST" and path in self._changes:
            return self._change(environment, self._changes[path])
        if environment["REQUEST_METHOD"] not in _READ:
            return _refusal(HTTPStatus.METHOD_NOT_ALLOWED, ("Allow", "GET, HEAD"))
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

    def _page(self, _: Environment) -> Response:
        access = self._access()
        # The token is in it: what was made for other settings is another page.
        body = self._figures.page(f"page {access.token}", lambda each: page(each, access))
        return Response(type="text/html; charset=utf-8", body=body)

    def _change(self, environment: Environment, action: Callable[[Mapping[str, str]], Response]) -> Response:
        """Do what a form of our page asks for, where that is allowed."""
        access = self._access()
        if not access.admin:
            return _refusal(HTTPStatus.FORBIDDEN)
        form = _form(environment)
        if form is None:
            return _refusal(HTTPStatus.BAD_REQUEST)
        if not compare_digest(form.get("token", "").encode(), access.token.encode()):
            return _refusal(HTTPStatus.FORBIDDEN)
        return action(form)

    def _change_server(self, form: Mapping[str, str]) -> Response:
        states = {each.name.lower(): each for each in AdminState}
        state = states.get(form.get("state", ""))
        if state is None:
            return _refusal(HTTPStatus.BAD_REQUEST)
        pool, server = form.get("pool", ""), form.get("server", "")
        try:
            servers.set_state(self._paths, pool=pool, server=server, state=state)
        except NotDone as error:
            return Response(status=HTTPStatus.CONFLICT, body=f"{error}\n".encode())
        finally:
            self._figures.forget()
        self._on_change(pool, server, state)
        return _refusal(HTTPStatus.SEE_OTHER, ("Location", "/haproxy_stats"))

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
            *keepalived_metrics(observations),
            *appliance_metrics(status, observations, configuration_hash=figures.configuration_hash),
            *program_metrics(status, observations, figures.descriptors),
            *source_metrics(status),
        ),
        form,
    )


def _schema(_: Environment) -> Response:
    return Response(type="application/schema+json", body=msgspec.json.encode(msgspec.json.schema(Status)))


def _static(name: str, _: Environment) -> Response:
    return Response(type=STATIC[name], body=static(name))


def _form(environment: Environment) -> Mapping[str, str] | None:
    """Return the fields of a form, None where the body is none or too long."""
    length = environment.get("CONTENT_LENGTH") or "0"
    if not length.isascii() or not length.isdecimal() or int(length) > _LONGEST_FORM:
        return None
    body: BinaryIO = environment["wsgi.input"]  # type: ignore[assignment]  # the one that is no text (PEP 3333)
    try:
        return dict(parse_qsl(body.read(int(length)).decode(), max_num_fields=10, strict_parsing=True))
    except ValueError:
        return None


def _refusal(status: HTTPStatus, *headers: tuple[str, str]) -> Response:
    return Response(status=status, body=f"{status.phrase}\n".encode(), headers=headers)
