"""Directives with conditions: `acl`, `tcp-request`, `monitor fail`; judged when their section ends."""

from typing import Final

from appliance.model.messages.quoting import shown
from appliance.translation.haproxy.directives.section import Kind, Rule
from appliance.translation.haproxy.directives.statement import Statement

_BY_CONTENT: Final = (
    "what clients send is not looked at: `tcp-request connection accept|reject` by `src` is what can be said"
)


def _in_defaults(statement: Statement) -> bool:
    """Refuse rules of a `defaults` section: they are not handed on."""
    if statement.section.kind is not Kind.DEFAULTS:
        return False
    statement.refuse("rules are not handed on: write it into each frontend")
    return True


def acl(statement: Statement) -> None:
    """`acl NAME CRITERION ...`; lines of one name add up."""
    if _in_defaults(statement):
        return
    if len(statement.arguments) < 2:
        statement.refuse("a name and a criterion are needed: `acl NAME src 10.0.0.0/24`")
        return
    statement.section.acls.setdefault(statement.argument(0), []).append(statement.line)


def connection(statement: Statement) -> None:
    """`tcp-request connection|session accept|reject [if|unless CONDITION]`."""
    verb = statement.argument(0)
    if _in_defaults(statement):
        return
    if verb not in {"accept", "reject"}:
        statement.refuse(f"{shown(verb)} is not done: `accept` and `reject` are", 0)
        return
    statement.section.access.append(Rule(line=statement.line, verb=verb, condition=statement.arguments[1:]))


def content(statement: Statement) -> None:
    """`tcp-request content`: an `accept` alone refuses nobody, and waits for what is not looked at here."""
    if statement.argument(0) == "accept":
        statement.ignore("it accepts what would be accepted anyway: nothing waits for the first bytes here")
    elif statement.argument(0) == "reject" and "src" in statement.arguments:
        statement.refuse("write `tcp-request connection reject`, which needs no content", 0)
    else:
        statement.refuse(_BY_CONTENT, 0)


def monitor_fail(statement: Statement) -> None:
    """`monitor fail if|unless CONDITION`."""
    statement.section.failures.append(
        Rule(line=statement.line, verb=statement.argument(0), condition=statement.arguments[1:])
    )


def monitor_uri(statement: Statement) -> None:
    """`monitor-uri PATH`."""
    said = statement.read(str)
    if said:
        statement.section.settings.texts["monitor-uri"] = said
