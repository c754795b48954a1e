"""The commands of HAProxy's stats socket (management.txt 9.3) as values, and HAProxy's error messages.

A line is one command or several, separated by `;`. HAProxy's commands without a counterpart here count as
unknown, and are answered as HAProxy answers those.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from appliance.model.server_states import AdminState
from appliance.model.server_weights import MOST_PERCENT, MOST_WEIGHT, OperatorWeight

LINE_LIMIT: Final = 16384
"""Bytes of a line: HAProxy's default for its buffers (tune.bufsize)."""

_INTEGER: Final = re.compile(r"-?[0-9]{1,9}", re.ASCII)
_LEADING_INTEGER: Final = re.compile(r"-?[0-9]{1,9}(?![0-9])", re.ASCII)
_NEEDS_SERVER: Final = "Require 'backend/server'.\n"
_NEEDS_STATE: Final = "'set server <srv> state' expects 'ready', 'drain' and 'maint'.\n"
_WEIGHT_RANGE: Final = "Absolute weight can only be between 0 and 256 inclusive.\n"
_NO_WEIGHT: Final = "Require <weight> or <weight%>.\n"
_USAGE: Final = "usage: set server <backend>/<server> state | weight\n"

NO_BACKEND: Final = "No such backend.\n"
NO_SERVER: Final = "No such server.\n"
NO_PROXY: Final = "No such proxy.\n"
PERMISSION_DENIED: Final = "Permission denied\n"

HELP: Final = {
    "disable server (DEPRECATED)": "disable a server for maintenance (use 'set server' instead)",
    "enable server  (DEPRECATED)": "enable a disabled server (use 'set server' instead)",
    "get weight <bk>/<srv>": "report a server's current weight",
    "set server <bk>/<srv> [opts]": "change a server's state or weight",
    "set weight <bk>/<srv>  (DEPRECATED)": "change a server's weight (use 'set server' instead)",
    "show info": "report information about the running process",
    "show servers state [<backend>]": "dump volatile server information (all or for a single backend)",
    "show sess": "report the list of current sessions",
    "show stat [<proxy> <type> <server>]": "report counters for each proxy and server",
    "show version": "show version of the current process",
    "shutdown sessions server <bk>/<srv>": "kill sessions on a server",
    "help [<command>]": "list matching or all commands",
    "prompt": "toggle interactive mode with prompt",
    "quit": "disconnect",
}
"""The commands with their effects, as `help` prints them."""


class Simple(Enum):
    """Commands without arguments."""

    SHOW_INFO = "show info"
    SHOW_SESSIONS = "show sess"
    SHOW_TABLES = "show table"
    SHOW_VERSION = "show version"
    HELP = "help"
    PROMPT = "prompt"
    QUIT = "quit"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowStat:
    """Show rows: of one proxy by name or number, of some kinds, of one server by number; None means all.

    `kinds` is HAProxy's sum: 1 for frontends, 2 for backends, 4 for servers.
    """

    proxy: str | None = None
    kinds: int = 7
    server: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowServersState:
    """Show the states of all servers, or those of one pool."""

    pool: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GetWeight:
    """Show the weight of a server."""

    pool: str
    server: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetState:
    """Put a server into a state, permanently."""

    pool: str
    server: str
    state: AdminState


@dataclass(frozen=True, slots=True, kw_only=True)
class SetWeight:
    """Give a server another weight."""

    pool: str
    server: str
    weight: OperatorWeight


@dataclass(frozen=True, slots=True, kw_only=True)
class ShutdownSessions:
    """End the sessions of a server."""

    pool: str
    server: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A rejected command, and HAProxy's message for it."""

    answer: str


Command = Simple | ShowStat | ShowServersState | GetWeight | SetState | SetWeight | ShutdownSessions | Refused
"""The possible commands of a line."""


def commands(line: bytes) -> list[Command]:
    """Return the commands of a line, without its end; any bytes are accepted."""
    parts = line.decode("latin-1").split(";")
    return [_command(part.split()) for part in parts]


def help_text() -> str:
    """Return the list of all commands."""
    return "The following commands are valid at this level:\n" + _listing(HELP)


def unknown(words: list[str]) -> Refused:
    """Return HAProxy's answer to an unknown command: the list of all commands, or of similar ones."""
    if not words:
        return Refused(
            answer="Unknown command. Please enter one of the following commands only:\n" + _listing(HELP)
        )
    always = {"help [<command>]", "prompt", "quit"}
    likely = {name: about for name, about in HELP.items() if name.split()[0] == words[0] or name in always}
    head = "Unknown command, but maybe one of the following ones is a better match:\n"
    return Refused(answer=head + _listing(likely))


def _listing(chosen: Mapping[str, str]) -> str:
    return "".join(f"  {name:<39} : {about}\n" for name, about in chosen.items())


def _command(words: list[str]) -> Command:
    for length in (3, 2, 1):
        parse = _PARSERS.get(" ".join(words[:length]))
        if parse is not None and len(words) >= length:
            return parse(words[length:])
    return unknown(words)


def _simple(command: Simple) -> Callable[[list[str]], Command]:
    return lambda _: command


def _show_stat(words: list[str]) -> Command:
    if len(words) < 3:  # words such as `json` or `typed`, which HAProxy accepts, select other formats
        return unknown(["show"]) if words else ShowStat()
    proxy, kinds, server = words[:3]
    if not (_INTEGER.fullmatch(kinds) and _INTEGER.fullmatch(server)):
        return Refused(answer=NO_PROXY)
    return ShowStat(
        proxy=None if proxy == "-1" else proxy,
        kinds=7 if int(kinds) < 0 else int(kinds) & 7,
        server=None if int(server) < 0 else int(server),
    )


def _server(words: list[str]) -> tuple[str, str] | None:
    """Return pool and server of the first word, None if it names none."""
    pool, slash, server = words[0].partition("/") if words else ("", "", "")
    return (pool, server) if pool and slash and server else None


def _get_weight(words: list[str]) -> Command:
    place = _server(words)
    return GetWeight(pool=place[0], server=place[1]) if place else Refused(answer=_NEEDS_SERVER)


def _set_server(words: list[str]) -> Command:
    place = _server(words)
    if place is None:
        return Refused(answer=_NEEDS_SERVER)
    match words[1:2]:
        case ["state"]:
            return _set_state(place, words[2:])
        case ["weight"]:
            return _set_weight_of(place, words[2:])
        case _:
            return Refused(answer=_USAGE)


def _set_state(place: tuple[str, str], words: list[str]) -> Command:
    state = {each.name.lower(): each for each in AdminState}.get(words[0] if words else "")
    if state is None:
        return Refused(answer=_NEEDS_STATE)
    return SetState(pool=place[0], server=place[1], state=state)


def _set_weight(words: list[str]) -> Command:
    place = _server(words)
    return _set_weight_of(place, words[1:]) if place else Refused(answer=_NEEDS_SERVER)


def _set_weight_of(place: tuple[str, str], words: list[str]) -> Command:
    if not words:
        return Refused(answer=_NO_WEIGHT)
    number = _LEADING_INTEGER.match(words[0])
    if number is None:
        return Refused(answer="Empty weight string empty or preceded by garbage")
    weight, rest = int(number[0]), words[0][number.end() :]
    if rest == "%" and weight < 0:
        return Refused(answer="Relative weight must be positive.\n")
    if rest != "%" and not 0 <= weight <= MOST_WEIGHT:
        return Refused(answer=_WEIGHT_RANGE)
    if rest not in ("", "%"):
        return Refused(answer="Trailing garbage in weight string")
    given = OperatorWeight(value=min(weight, MOST_PERCENT), percent=rest == "%")
    return SetWeight(pool=place[0], server=place[1], weight=given)


def _set_to(state: AdminState) -> Callable[[list[str]], Command]:
    def parse(words: list[str]) -> Command:
        place = _server(words)
        if place is None:
            return Refused(answer=_NEEDS_SERVER)
        return SetState(pool=place[0], server=place[1], state=state)

    return parse


def _shutdown(words: list[str]) -> Command:
    place = _server(words)
    return ShutdownSessions(pool=place[0], server=place[1]) if place else Refused(answer=_NEEDS_SERVER)


_PARSERS: Final[Mapping[str, Callable[[list[str]], Command]]] = {
    **{each.value: _simple(each) for each in Simple},
    "show stat": _show_stat,
    "show servers state": lambda words: ShowServersState(pool=words[0] if words else None),
    "get weight": _get_weight,
    "set server": _set_server,
    "set weight": _set_weight,
    "enable server": _set_to(AdminState.READY),
    "disable server": _set_to(AdminState.MAINT),
    "shutdown sessions server": _shutdown,
}
