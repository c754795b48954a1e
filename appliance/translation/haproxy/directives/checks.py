r"""How servers are checked: `option httpchk`, `http-check`, `option tcp-check`, `option ssl-hello-chk`.

Old forms are read too: the version in `option httpchk GET /readyz HTTP/1.1\r\nHost:\ api` carries headers
after a line break (configuration.txt, option httpchk).
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from appliance.model.config.pools import MOST_FURTHER_CHECKS
from appliance.model.config.values import http
from appliance.model.config.values.addresses import dns_name, server_host
from appliance.model.config.values.http import Statuses
from appliance.model.messages.quoting import shown
from appliance.translation.haproxy.directives.dialogue_checks import own_rules
from appliance.translation.haproxy.directives.section import CheckKind, CheckSettings
from appliance.translation.haproxy.directives.statement import Handler, Statement
from appliance.translation.haproxy.values.quantities import within

_HARMLESS: Final = frozenset({"connection", "user-agent", "accept"})
_VERSION: Final = re.compile(r"HTTP/[0-9.]+")
_PLAIN_REGEX: Final = re.compile(r"[A-Za-z0-9 _/:;,=\"'<>@%&~!-]+")
_STATUS_REGEX: Final = re.compile(r"\^?[0-9.\[\]|()-]{1,40}\$?")
_BEFORE_MATCH: Final = frozenset(
    (
        "min-recv",
        "comment",
        "ok-status",
        "error-status",
        "tout-status",
        "on-success",
        "on-error",
        "status-code",
    )
)
_ALL: Final = range(100, 600)

_Take = Callable[[Statement, CheckSettings, int], int]
"""Takes a word of `connect` at a position; returns how many words it has used."""


def kind(found: CheckKind) -> Handler:
    """Return the handler of an option that selects the kind of check; the last one of a section counts."""

    def handle(statement: Statement) -> None:
        off = statement.negated
        statement.section.settings.check.kind = statement.placed(CheckKind.PLAIN if off else found)

    return handle


def ssl_hello(statement: Statement) -> None:
    """`option ssl-hello-chk`."""
    kind(CheckKind.TLS_HELLO)(statement)
    statement.change("the check makes a full TLS handshake, not an SSLv3 hello")


def httpchk(statement: Statement) -> None:
    """`option httpchk [METHOD] [URI] [VERSION]`; a single word is the URI, and the method then OPTIONS."""
    statement.section.settings.check = CheckSettings()
    kind(CheckKind.HTTP)(statement)
    if statement.negated:
        return
    check = statement.section.settings.check
    words = statement.arguments
    check.method = statement.read(http.method) if len(words) > 1 else statement.placed("OPTIONS")
    check.path = statement.read(http.path, min(1, len(words) - 1)) if words else statement.placed("/")
    if len(words) > 2:
        version, *headers = words[2].replace("\r\n", "\n").split("\n")
        if not _VERSION.fullmatch(version):
            statement.refuse(f"{shown(version)} is not a version: write `HTTP/1.0` or `HTTP/1.1`", 2)
        for header in headers:
            _header(statement, 2, *_cut_header(header))


def _cut_header(text: str) -> tuple[str, str]:
    name, _, value = text.partition(":")
    return name.strip(), value.strip()


def _header(statement: Statement, index: int, name: str, value: str) -> None:
    if name.lower() == "host":
        try:
            found = http.host_header(value)
        except ValueError as error:
            statement.refuse(str(error), index)
            return
        statement.section.settings.check.host = statement.placed(found, index)
    elif name.lower() in _HARMLESS:
        statement.ignore(f"the header {shown(name)}: the check sends its own", index)
    elif name:
        statement.refuse(f"the header {shown(name)} cannot be sent: only `Host` can", index)


def http_send(statement: Statement) -> None:
    """`http-check send meth METHOD uri URI ver VERSION hdr NAME VALUE ...`."""
    check = own_rules(statement)
    at = 0
    while at < len(statement.arguments):
        match statement.argument(at):
            case "meth":
                check.method = statement.read(http.method, at + 1)
            case "uri":
                check.path = statement.read(http.path, at + 1)
            case "hdr":
                _header(statement, at + 1, statement.argument(at + 1), statement.argument(at + 2))
                at += 1
            case "ver" | "comment":
                pass
            case word:
                statement.refuse(f"{shown(word)} is not supported: `meth`, `uri` and `hdr Host` are", at)
        at += 2
    statement.placed(value=True)


def http_connect(statement: Statement) -> None:
    """`http-check connect`: port, address and TLS of the one connection of a check."""
    check = own_rules(statement)
    if check.connect:
        statement.refuse("a check by HTTP makes one connection: remove the others")
        return
    _read_connection(statement, check)


def tcp_connect(statement: Statement) -> None:
    """`tcp-check connect`: a connection, with the steps up to the next one."""
    check = own_rules(statement)
    if check.steps and not check.connect:
        statement.refuse("HAProxy requires a `tcp-check connect` to be the first rule, or none")
    elif len(check.further) >= MOST_FURTHER_CHECKS:
        statement.refuse(f"a check makes at most {MOST_FURTHER_CHECKS + 1} connections")
    elif check.connect:
        further = CheckSettings()
        check.further = (*check.further, further)
        _read_connection(statement, further)
    else:
        _read_connection(statement, check)


def _read_connection(statement: Statement, check: CheckSettings) -> None:
    at = 0
    while at < len(statement.arguments):
        take = _CONNECT.get(statement.argument(at))
        if take is None:
            statement.refuse(f"{shown(statement.argument(at))} cannot be set for a check's connection", at)
            at += 1
        else:
            at += take(statement, check, at)
    check.connect = statement.placed(value=True)


def _value(name: str, convert: Callable[[str], object]) -> _Take:
    def take(statement: Statement, check: CheckSettings, at: int) -> int:
        setattr(check, name, statement.read(convert, at + 1))
        return 2

    return take


def _flag(name: str) -> _Take:
    def take(statement: Statement, check: CheckSettings, at: int) -> int:
        setattr(check, name, statement.placed(value=True, index=at))
        return 1

    return take


def _default(_: Statement, check: CheckSettings, __: int) -> int:
    check.as_server = True
    return 1


def _nothing(count: int) -> _Take:
    return lambda *_: count


_CONNECT: Final[Mapping[str, _Take]] = {
    "port": _value("port", within(1, 65535)),
    "addr": _value("address", server_host),
    "sni": _value("sni", dns_name),
    "ssl": _flag("tls"),
    "send-proxy": _flag("send_proxy"),
    "default": _default,
    "linger": _nothing(1),
    "comment": _nothing(2),
    "alpn": _nothing(2),
    "proto": _nothing(2),
}


def http_expect(statement: Statement) -> None:
    """`http-check expect [!] status|rstatus|string|rstring PATTERN`.

    With such a rule HAProxy checks nothing else: an expected text passes with any status.
    """
    own_rules(statement)
    at = 0
    while statement.argument(at) in _BEFORE_MATCH:
        at += 2
    negated = statement.argument(at) == "!"
    at += negated
    known = _EXPECT.get((statement.argument(at), negated))
    if known is None:
        what = " ".join(statement.arguments[at - negated : at + 1])
        statement.refuse(f"{shown(what)} is not supported: `status`, `! status` and `string` are", at)
        return
    known(statement, at + 1)


def _listed(text: str) -> Statuses:
    """Return the statuses of `200,204,300-399`."""
    return http.statuses(list(text.split(",")))


def _others(text: str) -> Statuses:
    barred = {status for low, high in _listed(text) for status in range(low, high + 1)}
    return _ranges([each for each in _ALL if each not in barred])


def _matching(pattern: str) -> Statuses:
    """Return the statuses in which a regular expression without repetitions finds a match."""
    if not _STATUS_REGEX.fullmatch(pattern):
        raise ValueError(f"{shown(pattern)} is not supported: write `status 200-399`")
    try:
        found = re.compile(pattern)
    except re.error:
        raise ValueError(f"{shown(pattern)} is not a regular expression: write `status 200-399`") from None
    return _ranges([each for each in _ALL if found.search(str(each))])


def _ranges(statuses: list[int]) -> Statuses:
    """Return inclusive ranges for ascending statuses; raises ValueError for none: no server could pass."""
    found: list[tuple[int, int]] = []
    for each in statuses:
        if found and found[-1][1] == each - 1:
            found[-1] = (found[-1][0], each)
        else:
            found.append((each, each))
    if not found:
        raise ValueError("no status would pass the check")
    return tuple(found)


def _put_statuses(convert: Callable[[str], Statuses], statement: Statement, at: int) -> None:
    check, given = statement.section.settings.check, statement.read(convert, at)
    if given and check.statuses:
        line = statement.report.line_name(check.statuses.place.line)
        statement.refuse(f"{line} already sets the good statuses: remove one of the lines")
    elif given:
        check.statuses = given


def _string(statement: Statement, at: int) -> None:
    check = statement.section.settings.check
    given = statement.read(_text, at)
    if given and check.body:
        statement.refuse("a check searches the answer for one text: remove the others", at)
    elif given:
        check.body = given


def _text(text: str) -> str:
    if text:
        return text
    raise ValueError("the text that the answer must contain is missing")


def _string_regex(statement: Statement, at: int) -> None:
    if not _PLAIN_REGEX.fullmatch(statement.argument(at)):
        statement.refuse(
            "answers are not matched against regular expressions: write `string` and a plain text", at
        )
        return
    _string(statement, at)


_EXPECT: Final[Mapping[tuple[str, bool], Callable[[Statement, int], None]]] = {
    ("status", False): partial(_put_statuses, _listed),
    ("status", True): partial(_put_statuses, _others),
    ("rstatus", False): partial(_put_statuses, _matching),
    ("string", False): _string,
    ("rstring", False): _string_regex,
}
