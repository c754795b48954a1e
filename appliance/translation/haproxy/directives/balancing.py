"""`balance` and `stick`: how a backend chooses its server (configuration.txt, 4.2)."""

from collections.abc import Callable, Mapping
from typing import Final

from appliance.model.messages.problems import listed
from appliance.model.messages.quoting import shown
from appliance.translation.haproxy.directives.statement import Statement

_STICKING: Final = frozenset({"on", "match", "store-request"})
_BY_CONTENT: Final = frozenset({"uri", "url_param", "hdr", "rdp-cookie", "sticky", "log-hash"})


def balance(statement: Statement) -> None:
    """Take the algorithm; one that depends on HTTP is refused."""
    name = statement.argument(0)
    plain, _, inside = name.partition("(")
    known = _ALGORITHMS.get(plain)
    if not statement.arguments:
        _named("roundrobin")(statement, "")  # as HAProxy accepts it
    elif plain in _BY_CONTENT:
        statement.refuse(
            (
                f"{shown(plain)} needs HTTP, which is not read here: `balance source` keeps clients on "
                "their servers"
            ),
            0,
        )
    elif known is None:
        hint = statement.report.meant(plain, _ALGORITHMS) or f": write one of {listed(tuple(_ALGORITHMS))}"
        statement.refuse(f"{shown(name)} is not an algorithm{hint}", 0)
    else:
        known(statement, inside.rstrip(")"))


def stick_table(statement: Statement) -> None:
    """Note the key of the section's table: `stick on src` does not need the table itself."""
    words = statement.arguments
    if "type" in words[:-1]:
        statement.section.table = words[words.index("type") + 1]
    statement.ignore("only rules use tables, and each rule is judged separately")


def stick(statement: Statement) -> None:
    """Take `stick on src` and its two halves; clients cannot stick by anything else."""
    verb = statement.argument(0)
    if verb in _STICKING and statement.arguments[1:] == ("src",):
        statement.section.sticks[verb] = statement.placed("source")
    else:
        statement.refuse("no table keeps clients on a server here: write `balance source`")


def _named(name: str, change: str = "") -> Callable[[Statement, str], None]:
    """Return what takes our algorithm of this name, and reports what is different."""

    def take(statement: Statement, _: str) -> None:
        statement.section.settings.texts["balance"] = statement.placed(name)
        if change:
            statement.change(change, 0)

    return take


_source: Final = _named(
    "source", "a client stays on one server, possibly a different one than HAProxy's hash chose"
)


def _random(statement: Statement, draws: str) -> None:
    statement.section.settings.texts["balance"] = statement.placed("random")
    if draws not in {"", "2"}:
        statement.change("always the less busy of two servers is chosen, not of another number", 0)


def _hash(statement: Statement, _: str) -> None:
    if statement.arguments[1:] != ("src",):
        statement.refuse(
            (
                "`hash` supports only `src` here: write `balance source`, or `balance: hash` with "
                "`hash_on` in our own file"
            ),
            1,
        )
        return
    _source(statement, "")


_ALGORITHMS: Final[Mapping[str, Callable[[Statement, str], None]]] = {
    "roundrobin": _named("roundrobin"),
    "static-rr": _named(
        "roundrobin", "`roundrobin`: the same rotation, with weights that can change at any time"
    ),
    "leastconn": _named("leastconn"),
    "source": _source,
    "random": _random,
    "first": _named(
        "first",
        "each worker fills its own share of `maxconn`: with several workers the next server is used slightly "
        "earlier",
    ),
    "hash": _hash,
}
