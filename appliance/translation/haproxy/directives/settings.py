"""Directives that set one value of their section: times, limits, switches, the mode and the backend."""

from collections.abc import Callable

from appliance.model.config.values.field_types import MOST_CONNECTIONS, MOST_PROBES
from appliance.model.messages.quoting import shown
from appliance.translation.haproxy.directives.section import Rule
from appliance.translation.haproxy.directives.statement import Handler, Statement
from appliance.translation.haproxy.values.endpoints import ANY_IPV4
from appliance.translation.haproxy.values.quantities import within

_MOST: int = 2_147_483_647
_UNREACHED: str = "no connection reaches this rule"
_NOTHING_WAITS: str = "no rule waits for the first bytes here"


def time(name: str) -> Handler:
    """Return the handler of a time."""

    def handle(statement: Statement) -> None:
        given = statement.time()
        if given:
            statement.section.settings.times[name] = given

    return handle


def number(name: str, *, least: int = 0, most: int = _MOST) -> Handler:
    """Return the handler of a whole number."""

    def handle(statement: Statement) -> None:
        given = statement.read(within(least, most))
        if given:
            statement.section.settings.numbers[name] = given

    return handle


def text(name: str, convert: Callable[[str], str] = str) -> Handler:
    """Return the handler of a text."""

    def handle(statement: Statement) -> None:
        given = statement.read(convert)
        if given:
            statement.section.settings.texts[name] = given

    return handle


def flag(name: str) -> Handler:
    """Return the handler of a switch, which `no` turns off."""

    def handle(statement: Statement) -> None:
        statement.section.settings.flags[name] = statement.placed(not statement.negated)

    return handle


def seconds(name: str, *, most: int) -> Handler:
    """Return the handler of a TCP keepalive time, which HAProxy passes to the kernel in whole seconds."""

    def handle(statement: Statement) -> None:
        given = statement.time()
        if given is None:
            return
        whole = max(1, min(most, given.value // 1000))
        if whole * 1000 != given.value:
            statement.change(f"{whole}s: the kernel counts whole seconds, from 1 to {most}", 0)
        statement.section.settings.times[name] = statement.placed(whole * 1000)

    return handle


def mode(text: str) -> str:
    """Return a mode; whether http is possible is decided once the whole section is read."""
    if text in {"tcp", "http"}:
        return text
    raise ValueError(f"the mode {shown(text)} is not supported: write `mode tcp`")


def use_backend(statement: Statement) -> None:
    """`use_backend NAME [if|unless CONDITION]`; without a condition it takes all that reach it."""
    statement.report.settle(statement.line.number, _UNREACHED)
    given = statement.read(str)
    if given is None:
        return
    rule = Rule(line=statement.line, verb=given.value, condition=statement.arguments[1:])
    statement.section.routes.append(rule)
    if not rule.condition:
        statement.section.settings.texts.setdefault("use_backend", given)


def inspect_delay(statement: Statement) -> None:
    """`tcp-request inspect-delay TIME`: how long to wait for a server name, if any rule needs it."""
    statement.report.settle(statement.line.number, _NOTHING_WAITS)
    time("inspect-delay")(statement)


def redispatch(statement: Statement) -> None:
    """`option redispatch`: ours is always so."""
    flag("redispatch")(statement)
    if statement.negated:
        statement.change("retries always go to another server if there is one")


def disabled(statement: Statement) -> None:
    """`disabled` of a section."""
    statement.section.settings.flags["disabled"] = statement.placed(value=True)


def enabled(statement: Statement) -> None:
    """Undo the `disabled` of a section's defaults."""
    statement.section.settings.flags["disabled"] = statement.placed(value=False)


def source(statement: Statement) -> None:
    """`source ADDRESS`: only the address that leaves the choice to the system."""
    if statement.arguments not in {(ANY_IPV4,), ("*",), (f"{ANY_IPV4}:0",)}:
        statement.refuse(
            "the system chooses the source address of connections: set it on the route (`ip route ... src`)"
        )


def connections(statement: Statement) -> None:
    """`maxconn` of a section: 0 means the process's own limit."""
    number("maxconn", most=MOST_CONNECTIONS)(statement)


def probes(name: str) -> Handler:
    """Return the handler of a number of keepalive probes."""
    return number(name, least=1, most=MOST_PROBES)
