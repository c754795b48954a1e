"""The directives `stats` of a section: where HAProxy shows its statistics (configuration.txt, stats ...)."""

from typing import Final

from appliance.model.messages.quoting import shown
from appliance.translation.haproxy.directives.statement import Statement

_UNSEEN: Final = (
    "HAProxy shows statistics only in `mode http`, and no served section in this mode has the line"
)


def enable(statement: Statement) -> None:
    """`stats enable`."""
    _turn_on(statement)


def _turn_on(statement: Statement) -> None:
    """Note the first line that enables the statistics."""
    stats = statement.section.settings.stats
    if stats.on is None:
        statement.report.settle(statement.line.number, _UNSEEN)
        stats.on = statement.placed(value=True)


def uri(statement: Statement) -> None:
    """`stats uri PATH`, which enables them too."""
    if not statement.arguments:
        statement.refuse("a value is missing")
        return
    statement.report.settle(statement.line.number, _UNSEEN)
    statement.section.settings.stats.uri = statement.placed(statement.argument(0))
    _turn_on(statement)


def auth(statement: Statement) -> None:
    """`stats auth USER:PASSWORD`; our page has only one user."""
    stats = statement.section.settings.stats
    user, colon, password = statement.argument(0).partition(":")
    if not (user.isprintable() and password.isprintable() and user and password and colon):
        statement.refuse("the line needs a user and a password: `stats auth USER:PASSWORD`", 0)
        return
    _turn_on(statement)
    if stats.auth is not None and stats.auth.place.line > statement.section.header.number:
        reason = f"the page has one user, {shown(stats.auth.value[0])}: this one has no access"
        statement.change(reason, 0)
        return
    statement.report.settle(statement.line.number, _UNSEEN)
    stats.auth = statement.placed((user, password))


def scope(statement: Statement) -> None:
    """`stats scope NAME`: shows only some sections, and also enables the statistics."""
    statement.report.settle(statement.line.number, _UNSEEN)
    statement.section.settings.stats.scope = statement.placed(statement.argument(0))
    _turn_on(statement)


def admin(statement: Statement) -> None:
    """`stats admin if CONDITION`: the page can change servers."""
    stats = statement.section.settings.stats
    _turn_on(statement)
    if statement.arguments in {("if", "TRUE"), ("if", "{", "always_true", "}")}:
        stats.admin = statement.placed(value=True)
    else:
        statement.change(
            f"the page cannot change servers: {shown(' '.join(statement.arguments))} is not supported; "
            "use `appliance drain|maint|ready`"
        )
