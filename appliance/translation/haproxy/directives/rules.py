"""Directives with conditions, `acl` and `tcp-request` among them; they are evaluated with their section."""

from typing import Final

from appliance.model.messages.quoting import shown
from appliance.translation.haproxy.directives.section import Kind, Level, Rule
from appliance.translation.haproxy.directives.statement import Handler, Statement

ACCEPTING: Final = frozenset({"accept", "allow"})
"""Verbs that let a client through and end the rules of a level."""

_TCP: Final = frozenset({"accept", "reject", "silent-drop"})
_HTTP: Final = frozenset({"allow", "deny", "auth", "reject", "tarpit", "silent-drop", "redirect"})
_WHEN: Final = frozenset({"if", "unless"})

_BY_CONTENT: Final = (
    "data from clients is not inspected: only `tcp-request connection accept|reject` by `src` is supported"
)
_UNASKED: Final = "no rule in effect uses it"
_UNREACHED: Final = "no client reaches this rule: no served section uses it"


def _in_defaults(statement: Statement) -> bool:
    """Refuse rules in a `defaults` section: they are not passed on."""
    if statement.section.kind is not Kind.DEFAULTS:
        return False
    statement.refuse("rules in `defaults` are not inherited: write it in each frontend")
    return True


def _add(statement: Statement, level: Level, condition: tuple[str, ...]) -> None:
    rule = Rule(line=statement.line, verb=statement.argument(0), condition=condition)
    statement.section.rules.setdefault(level, []).append(rule)
    statement.report.settle(statement.line.number, _UNREACHED)


def acl(statement: Statement) -> None:
    """`acl NAME CRITERION ...`; lines of one name add up."""
    if _in_defaults(statement):
        return
    if len(statement.arguments) < 2:
        statement.refuse("an `acl` needs a name and a criterion: `acl NAME src 10.0.0.0/24`")
        return
    statement.section.acls.setdefault(statement.argument(0), []).append(statement.line)
    statement.report.settle(statement.line.number, _UNASKED)


def connection(level: Level) -> Handler:
    """Return the handler of `tcp-request connection|session accept|reject [if|unless CONDITION]`."""

    def handle(statement: Statement) -> None:
        if statement.section.kind is Kind.BACKEND:
            # HAProxy does not start with it, so it has never rejected anybody.
            statement.refuse(f"HAProxy refuses it in a backend too: write `{Level.CONTENT}`")
        elif not _in_defaults(statement) and _is_done(statement):
            _add(statement, level, statement.arguments[1:])

    return handle


def _is_done(statement: Statement) -> bool:
    verb = statement.argument(0)
    if verb not in _TCP:
        statement.refuse(f"{shown(verb)} is not supported: `accept` and `reject` are", 0)
    return verb in _TCP


def content(statement: Statement) -> None:
    """`tcp-request content accept|reject [if|unless CONDITION]`."""
    if _in_defaults(statement):
        return
    if statement.argument(0) not in _TCP:
        statement.refuse(_BY_CONTENT, 0)
        return
    _add(statement, Level.CONTENT, statement.arguments[1:])


def request(level: Level) -> Handler:
    """Return the handler of `http-request`: no effect on TCP, but it may limit who sees statistics."""

    def handle(statement: Statement) -> None:
        if statement.argument(0) not in _HTTP:
            statement.ignore("it is for HTTP, which is not read here: bytes pass through unchanged")
        elif not _in_defaults(statement):
            words = statement.arguments
            at = next((at for at, word in enumerate(words) if word in _WHEN), len(words))
            _add(statement, level, words[at:])

    return handle


def monitor_fail(statement: Statement) -> None:
    """`monitor fail if|unless CONDITION`."""
    statement.section.failures.append(
        Rule(line=statement.line, verb=statement.argument(0), condition=statement.arguments[1:])
    )
