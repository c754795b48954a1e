"""The directives `stats` of a section: where HAProxy's statistics are seen (configuration.txt, stats ...)."""

from appliance.model.messages.quoting import printable, shown
from appliance.translation.haproxy.directives.statement import Statement


def enable(statement: Statement) -> None:
    """`stats enable`."""
    _turn_on(statement)


def _turn_on(statement: Statement) -> None:
    """Note the first line that turns the statistics on."""
    stats = statement.section.settings.stats
    stats.on = stats.on or statement.said(value=True)


def uri(statement: Statement) -> None:
    """`stats uri PATH`, which turns them on too."""
    said = statement.read(str)
    if said:
        statement.change(
            f"the figures are at `{printable(said.value)};csv`, and at /metrics and /api/v1/status"
        )
        statement.section.settings.stats.uri = said
        _turn_on(statement)


def auth(statement: Statement) -> None:
    """`stats auth USER:PASSWORD`, of which ours takes one."""
    stats = statement.section.settings.stats
    user, colon, password = statement.argument(0).partition(":")
    if not (user.isprintable() and password.isprintable() and user and password and colon):
        statement.refuse("a user and a password are needed: `stats auth USER:PASSWORD`", 0)
        return
    _turn_on(statement)
    if stats.auth is not None and stats.auth.place.line > statement.section.header.number:
        reason = f"one user can look here, and that is {shown(stats.auth.value[0])}: this one cannot"
        statement.change(reason, 0)
        return
    stats.auth = statement.said((user, password))


def admin(statement: Statement) -> None:
    """`stats admin if CONDITION`: servers can be changed from the page."""
    stats = statement.section.settings.stats
    _turn_on(statement)
    if statement.arguments in {("if", "TRUE"), ("if", "{", "always_true", "}")}:
        stats.admin = statement.said(value=True)
    else:
        statement.change(
            f"the page cannot change servers: {shown(' '.join(statement.arguments))} cannot be asked; "
            "`appliance drain|maint|ready` does it"
        )
