"""Dialogue checks, as our steps: `tcp-check send|expect|comment`, and protocols that HAProxy implements.

`option redis-check` and similar options send what HAProxy 2.6 sends. They expect the same answers, but never
wait for one that can no longer come: a wrong answer is reported at once.
"""

from collections.abc import Callable, Mapping
from typing import Final

from appliance.model.byte_pattern import byte_pattern
from appliance.model.config.values.check_steps import (
    LONGEST_COMMENT,
    LONGEST_TEXT,
    MOST_RECEIVED,
    MOST_STEPS,
    binary,
)
from appliance.model.document.tree import Plain
from appliance.model.messages.quoting import masked, shown
from appliance.translation.haproxy.directives.section import CheckKind, CheckSettings, CheckStep, Placed
from appliance.translation.haproxy.directives.statement import Statement
from appliance.translation.haproxy.values.quantities import within

_STATUSES: Final = frozenset({"ok-status", "error-status", "tout-status"})
_WORDS: Final = frozenset({"on-success", "on-error", "status-code"})
_CONDITIONAL: Final = "L7OKC"
_LONGEST_USER: Final = 200

_POSITIVE: Final[CheckStep] = {"expect_rstring": "^[^2]", "negate": True, "min_recv": 1}
_WHOLE: Final[CheckStep] = {"expect_rstring": r"^(2[0-9]{2}-[^\n]*\n)*2[0-9]{2}[ \r\n]"}
"""A positive answer of SMTP to its last line (RFC 5321 section 4.2.1): sending earlier ends the session."""

_MYSQL_PACKET: Final[CheckStep] = {"expect_rstring": r"^[\x00-\xff]{4}[^\xff]", "min_recv": 5}
"""Length, number and a first byte that is not an error's."""

_MYSQL_QUIT: Final = "0100000001"
_POSTGRES_ANSWER: Final[CheckStep] = {
    "expect_rstring": r"^R\x00{3}[\x00-\xff]\x00{3}[\x00\x02-\x07\x09\x0a]",
    "min_recv": 9,
}
"""The request for a password in any form, or the message that none is needed."""

_LDAP: Final[CheckStep] = {
    "send_binary": "300c020101600702010304008000",
    "expect_rstring": r"^0[\x00-\xff]{1,5}\x02\x01\x01a[\x00-\xff]{1,5}\x0a\x01\x00",
    "min_recv": 14,
}
"""An anonymous bind of version 3, and its success; lengths in any form of BER."""

_REDIS: Final[CheckStep] = {"send": "*1\r\n$4\r\nPING\r\n", "expect": "+PONG\r\n", "min_recv": 7}


def own_rules(statement: Statement) -> CheckSettings:
    """Return the rules of this section: its first one replaces all that its defaults set."""
    check = statement.section.settings.check
    if check.inherited:
        check.inherited = False
        check.statuses = check.body = check.port = check.address = None
        check.tls = check.sni = check.send_proxy = check.connect = None
        check.further, check.steps, check.comment = (), (), ""
    return check


def comment(statement: Statement) -> None:
    """`tcp-check comment TEXT`, for the rule after it."""
    own_rules(statement).comment = _short(statement.argument(0))


def send(statement: Statement) -> None:
    """`tcp-check send TEXT [comment TEXT]`."""
    _put(statement, statement.read(_sent), at=1)


def send_format(statement: Statement) -> None:
    """`tcp-check send-lf FORMAT`: without a `%` it is plain text."""
    if "%" in statement.argument(0):
        statement.refuse(
            "the text that a check sends has no variables: write `tcp-check send` and the text itself", 0
        )
        return
    send(statement)


def send_binary(statement: Statement) -> None:
    """`tcp-check send-binary HEX [comment TEXT]`."""
    _put(statement, statement.read(_binary("send_binary")), at=1)


def expect(statement: Statement) -> None:
    """`tcp-check expect [min-recv N] [comment TEXT] [!] string|rstring|binary PATTERN`."""
    step: dict[str, Plain] = {}
    at = 0
    while (read := _OPTIONS.get(statement.argument(at))) is not None:
        if not read(statement, at + 1, step):
            return
        at += 2
    negated = statement.argument(at).startswith("!")
    match = statement.argument(at).removeprefix("!")
    if negated and not match:
        at += 1
        match = statement.argument(at)
    reader = _MATCHES.get(match)
    if reader is None:
        statement.refuse(f"{shown(match)} is not supported: write `string`, `rstring` or `binary`", at)
        return
    given = statement.read(reader, at + 1)
    if given:
        negate: CheckStep = {"negate": True} if negated else {}
        _put(statement, Placed(value={**given.value, **negate, **step}, place=given.place), at=at + 2)


def redis(statement: Statement) -> None:
    """`option redis-check`."""
    _protocol(statement, _REDIS)


def ldap(statement: Statement) -> None:
    """`option ldap-check`."""
    _protocol(statement, _LDAP)


def smtp(statement: Statement) -> None:
    """`option smtpchk [HELO|EHLO DOMAIN]`."""
    hello = statement.argument(0).upper() if statement.argument(0).upper() == "EHLO" else "HELO"
    domain = statement.argument(1) or "localhost"
    greeting: CheckStep = {"send": f"{hello} {domain}\r\n"}
    _protocol(statement, _POSITIVE, _WHOLE, greeting, _POSITIVE, _WHOLE, {"send": "QUIT\r\n"})


def mysql(statement: Statement) -> None:
    """`option mysql-check [user NAME [post-41|pre-41]]`."""
    if not statement.arguments:
        _protocol(statement, _MYSQL_PACKET)
        return
    user = _user(statement)
    if user is None:
        return
    login = _mysql_login_of_3(user) if statement.argument(2) == "pre-41" else _mysql_login(user)
    packet = len(login).to_bytes(3, "little") + b"\x01" + login
    answer: CheckStep = {"send_binary": packet.hex() + _MYSQL_QUIT, **_MYSQL_PACKET}
    _protocol(statement, _MYSQL_PACKET, answer)


def postgres(statement: Statement) -> None:
    """`option pgsql-check user NAME`."""
    user = _user(statement)
    if user is not None:
        message = b"\x00\x03\x00\x00user\x00" + user + b"\x00\x00"
        sent = (len(message) + 4).to_bytes(4, "big") + message
        _protocol(statement, {"send_binary": sent.hex(), **_POSTGRES_ANSWER})


def _mysql_login(user: bytes) -> bytes:
    """Return a handshake response of protocol 4.1: capabilities, largest packet, character set, user."""
    return bytes.fromhex("0082000000800001") + b"\x21" + bytes(23) + user + b"\x00\x00"


def _mysql_login_of_3(user: bytes) -> bytes:
    return bytes.fromhex("0080000001") + user + b"\x00\x00"


def _user(statement: Statement) -> bytes | None:
    name = statement.argument(1).encode()
    if statement.argument(0) != "user" or not 1 <= len(name) <= _LONGEST_USER or b"\x00" in name:
        statement.refuse("the user's name is missing: `user NAME`")
        return None
    return name


def _protocol(statement: Statement, *steps: CheckStep) -> None:
    check = statement.section.settings.check
    check.kind = statement.placed(CheckKind.PROTOCOL)
    check.protocol = steps


def _put(statement: Statement, given: Placed[CheckStep] | None, *, at: int) -> None:
    """Add a step, with the comment on its line or before it."""
    if given is None:
        return
    check = own_rules(statement)
    connection = check.further[-1] if check.further else check
    if len(connection.steps) >= MOST_STEPS:
        statement.refuse(f"the check has more than {MOST_STEPS} steps")
        return
    told = _short(statement.argument(at + 1)) if statement.argument(at) == "comment" else ""
    noted, check.comment = told or check.comment, ""
    step = {**given.value, "comment": noted} if noted and "comment" not in given.value else given.value
    connection.steps = (*connection.steps, Placed(value=step, place=given.place))


def _min_recv(statement: Statement, at: int, step: dict[str, Plain]) -> bool:
    if statement.argument(at) == "-1":
        return True
    given = statement.read(within(0, MOST_RECEIVED), at)
    if given:
        step["min_recv"] = max(given.value, 1)
    return given is not None


def _comment(statement: Statement, at: int, step: dict[str, Plain]) -> bool:
    if text := _short(statement.argument(at)):
        step["comment"] = text
    return True


def _status(statement: Statement, at: int, _: dict[str, Plain]) -> bool:
    if statement.argument(at) != _CONDITIONAL:
        return True
    statement.refuse(
        f"a check sets a server up or down, not {_CONDITIONAL}: drain it with `appliance drain`", at
    )
    return False


def _ignored(_: Statement, __: int, ___: dict[str, Plain]) -> bool:
    return True


_OPTIONS: Final[Mapping[str, Callable[[Statement, int, dict[str, Plain]], bool]]] = {
    "min-recv": _min_recv,
    "comment": _comment,
    **dict.fromkeys(_STATUSES, _status),
    **dict.fromkeys(_WORDS, _ignored),
}


def _sent(text: str) -> CheckStep:
    return _text("send", text)


def _string(text: str) -> CheckStep:
    return _text("expect", text)


def _text(key: str, text: str) -> CheckStep:
    """Return a text as it is, or as hexadecimal digits if it is unreadable in a file."""
    if not 1 <= len(text.encode()) <= LONGEST_TEXT:
        raise ValueError(f"the text must have 1 to {LONGEST_TEXT} bytes")
    if all(each.isprintable() or each in "\r\n\t" for each in text):
        return {key: text}
    return {f"{key}_binary": text.encode().hex()}


def _binary(key: str) -> Callable[[str], CheckStep]:
    return lambda text: {key: binary("the text", text)}


def _rstring(text: str) -> CheckStep:
    byte_pattern(text)
    return {"expect_rstring": text}


_MATCHES: Final[Mapping[str, Callable[[str], CheckStep]]] = {
    "string": _string,
    "rstring": _rstring,
    "binary": _binary("expect_binary"),
}


def _short(text: str) -> str:
    return masked(text, " ").strip()[:LONGEST_COMMENT]
