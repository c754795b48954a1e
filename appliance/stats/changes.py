"""The forms of the page: states of servers, and hand-overs of virtual IPs.

A browser sends its remembered password with whatever any site makes it request. So a form must hold the token
that only our own pages have, and a browser that names the origin of a form must name us.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import closing
from hmac import compare_digest
from typing import BinaryIO, Final
from urllib.parse import parse_qsl

import gevent
from structlog.typing import FilteringBoundLogger

from appliance.model.paths import Paths
from appliance.model.program_names import VRRP
from appliance.model.server_states import AdminState
from appliance.net.boards.board_content import BoardFollower
from appliance.stats import servers
from appliance.stats.figures import LatestFigures
from appliance.stats.servers import have_done
from appliance.wire.boards import health_board
from appliance.wire.lines.control import Answer, Question

_TIMEOUT: Final = 25.0
"""Seconds to wait for the successor: less than a browser waits for an answer."""


def move(paths: Paths, name: str) -> str:
    """Hand a virtual IP over to another router, and return its address, "" if unknown; raises NotDone."""
    return str(_told(paths, "move", name).values.get("successor") or "")


def reclaim(paths: Paths, name: str) -> None:
    """Forget that a virtual IP was moved away; raises NotDone."""
    _told(paths, "reclaim", name)


def _told(paths: Paths, command: str, name: str) -> Answer:
    question = Question(command=command, values={"name": name})
    return have_done(paths.control(VRRP), question, timeout=_TIMEOUT)


_LONGEST_FORM: Final = 4096
_PUBLISHED_WITHIN: Final = 1.0  # seconds; with very many servers `health` publishes less often
_LOOK_AGAIN: Final = 0.02
_STATES: Final[Mapping[str, AdminState]] = {each.name.lower(): each for each in AdminState}

Environment = Mapping[str, str]
Form = Mapping[str, str]


class MalformedFormError(Exception):
    """The body of a request is not one of our forms."""


class ForeignFormError(Exception):
    """A form that is not from one of our pages, or from an outdated one."""


class Changes:
    """The forms, by the paths to which they are sent."""

    def __init__(self, paths: Paths, figures: LatestFigures, log: FilteringBoundLogger) -> None:
        self._paths = paths
        self._figures = figures
        self._log = log
        self._forms: Mapping[str, Callable[[Form], None]] = {
            "/servers": self._server,
            "/virtual-ips": self._virtual_ip,
        }

    def __contains__(self, path: object) -> bool:
        return path in self._forms

    def make(self, path: str, environment: Environment, *, token: str) -> None:
        """Do what a request asks for; raises MalformedFormError, ForeignFormError, NotDone."""
        form = _form(environment)
        # Fetch Metadata Request Headers (W3C): only browsers send it, and pages cannot set it.
        if environment.get("HTTP_SEC_FETCH_SITE", "same-origin") != "same-origin":
            raise ForeignFormError
        if not compare_digest(form.get("token", "").encode(), token.encode()):
            raise ForeignFormError
        try:
            self._forms[path](form)
        finally:
            self._figures.forget()

    def _server(self, form: Form) -> None:
        word, server = _change(form)
        state = _STATES.get(word)
        if state is None:
            raise MalformedFormError
        pool = form.get("pool", "")
        servers.set_state(self._paths, pool=pool, server=server, state=state)
        self._wait_for_board((pool, server), state)
        self._log.info("state-set", pool=pool, server=server, state=word, by="page")

    def _wait_for_board(self, key: tuple[str, str], state: AdminState) -> None:
        """Wait until the board has a server's new state, which `health` publishes after its answer."""
        until = time.monotonic() + _PUBLISHED_WITHIN
        with closing(BoardFollower(self._paths.health_board, health_board.decode)) as follower:
            while time.monotonic() < until:
                board = follower.changed()
                found = board.by_name().get(key) if board else None
                if board and (found is None or found.admin is state):
                    return
                gevent.sleep(_LOOK_AGAIN)

    def _virtual_ip(self, form: Form) -> None:
        word, name = _change(form)
        if word == "move":
            successor = move(self._paths, name)
            self._log.info("virtual-ip-moved", name=name, successor=successor, by="page")
        elif word == "reclaim":
            reclaim(self._paths, name)
            self._log.info("virtual-ip-reclaimed", name=name, by="page")
        else:
            raise MalformedFormError


def _change(form: Form) -> tuple[str, str]:
    """Return the action and its subject: the two words of the button that was pressed."""
    word, _, name = form.get("change", "").partition(" ")
    return word, name


def _form(environment: Environment) -> Form:
    """Return the fields of a form."""
    length = environment.get("CONTENT_LENGTH") or "0"
    if not length.isascii() or not length.isdecimal() or int(length) > _LONGEST_FORM:
        raise MalformedFormError
    body: BinaryIO = environment["wsgi.input"]  # type: ignore[assignment]  # the one that is no text (PEP 3333)
    try:
        return dict(parse_qsl(body.read(int(length)).decode(), max_num_fields=10, strict_parsing=True))
    except (OSError, ValueError) as error:  # a body that ends early, or was cut by its client
        raise MalformedFormError from error
