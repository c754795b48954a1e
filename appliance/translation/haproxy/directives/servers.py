"""`server`, `default-server` and `server-template`: the members of a backend (configuration.txt, 5.2)."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from appliance.model.config.values.addresses import dns_name, literal, server_host
from appliance.model.config.values.field_types import MOST_CONNECTIONS
from appliance.model.messages.quoting import shown
from appliance.model.server_weights import MOST_WEIGHT
from appliance.translation.haproxy.directives import keywords
from appliance.translation.haproxy.directives.keywords import Keyword, Word
from appliance.translation.haproxy.directives.section import Server, ServerOptions
from appliance.translation.haproxy.directives.statement import Statement
from appliance.translation.haproxy.values.endpoints import ServerTarget, server_target
from appliance.translation.haproxy.values.names import foreign
from appliance.translation.haproxy.values.quantities import within

MOST_OF_TEMPLATE: Final = 1024
"""Most servers of one `server-template`."""

_RANGE: Final = re.compile(r"(?:([0-9]{1,6})-)?([0-9]{1,6})", re.ASCII)


def server(statement: Statement) -> None:
    """Take a server with the options of `default-server` so far, overlaid with its own.

    A server without an address is left out with its line: its machine is not known yet (OpenShift's monitor
    writes ` server master-2 :6443` for a node without one), and the others serve. It is that server's problem
    and not the file's, so its line is ignored and not refused.
    """
    if len(statement.arguments) < 2:
        statement.refuse("the server needs a name and an address: `server NAME ADDRESS:PORT`")
        return
    target = _target(statement, 1)
    if target is None:
        return
    options = statement.section.settings.server.copy()
    keywords.take_all(statement, options, KEYWORDS, start=2)
    if not target.host:
        reason = (
            f"the server {shown(statement.argument(0))} has no address: it is left out, and the others serve"
        )
        statement.report.leave_out(statement.line.number, reason)
        return
    _put(statement, [statement.argument(0)], target, options)


def _target(statement: Statement, index: int) -> ServerTarget | None:
    """Return a server's address; if it is invalid, refuse the line and return None."""
    if statement.argument(index).startswith("_"):
        statement.refuse("service records (SRV) are not queried: write a name and a port", index)
        return None
    try:
        return server_target(statement.argument(index))
    except ValueError as error:
        statement.refuse(str(error), index)
        return None


def _put(statement: Statement, names: Sequence[str], target: ServerTarget, options: ServerOptions) -> None:
    """Add servers to the section, all at once or, with a refused line, none."""
    section = statement.section
    for name in names:
        fault = foreign(name)
        if fault is None and name in section.servers:
            fault = f"the server {shown(name)} exists already: choose another name"
        if fault:
            section.template = True
            statement.refuse(fault, 0)
            return
    if options.flag("ssl"):  # unencrypted it would be another server; the section is known to lack it
        section.template = True
        return
    for name in names:
        section.servers[name] = Server(name=name, line=statement.line, target=target, options=options)


def default_server(statement: Statement) -> None:
    """Take options for the servers on later lines."""
    keywords.take_all(statement, statement.section.settings.server, KEYWORDS, start=0)


def server_template(statement: Statement) -> None:
    """Take `server-template PREFIX NUMBER|RANGE NAME[:PORT]`: servers that share the addresses of a name."""
    if len(statement.arguments) < 3:
        statement.section.template = True
        statement.refuse("the servers need names and an address: `server-template PREFIX NUMBER NAME:PORT`")
        return
    numbers = statement.read(_numbers, 1)
    target = _target(statement, 2)
    if target is not None and (not target.host or literal(target.host)):
        statement.refuse(f"{shown(statement.argument(2))} is no DNS name: write a line `server` for it", 2)
        target = None
    if numbers is None or target is None:
        statement.section.template = True
        return
    options = statement.section.settings.server.copy()
    keywords.take_all(statement, options, KEYWORDS, start=3)
    names = [f"{statement.argument(0)}{number}" for number in numbers.value]
    _put(statement, names, target, options)
    statement.change(
        f"{names[0]} to {names[-1]}: each server has another address of the name, and is down while there is "
        "none, as in HAProxy with `resolvers`",
        2,
    )


def _numbers(text: str) -> range:
    """Return the numbers of `3`, which is `1-3`, or of a range."""
    found = _RANGE.fullmatch(text)
    low, high = (int(found[1] or 1), int(found[2])) if found else (1, 0)
    if low < 1 or high < low:
        raise ValueError(f"{shown(text)} is neither a number of servers nor a range such as `1-3`")
    if high - low >= MOST_OF_TEMPLATE:
        raise ValueError(f"{shown(text)} is more than {MOST_OF_TEMPLATE} servers")
    return range(low, high + 1)


def _flag(name: str, *, value: bool = True) -> Keyword[ServerOptions]:
    def take(word: Word[ServerOptions]) -> None:
        word.options.flags[name] = word.placed(value)

    return Keyword(values=0, take=take)


def _number(name: str, least: int, most: int) -> Keyword[ServerOptions]:
    def take(word: Word[ServerOptions]) -> None:
        given = word.read(within(least, most))
        if given:
            word.options.numbers[name] = given

    return Keyword(values=1, take=take)


def _time(name: str) -> Keyword[ServerOptions]:
    def take(word: Word[ServerOptions]) -> None:
        given = word.time()
        if given:
            word.options.times[name] = given

    return Keyword(values=1, take=take)


def _text(name: str, reader: Callable[[str], str] = str) -> Keyword[ServerOptions]:
    def take(word: Word[ServerOptions]) -> None:
        given = word.read(reader)
        if given:
            word.options.texts[name] = given

    return Keyword(values=1, take=take)


def _one_of(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text in words:
            return text
        raise ValueError(f"{shown(text)} is unknown: write {' or '.join(words)}")

    return read


def _proxy_header(version: str) -> Keyword[ServerOptions]:
    def take(word: Word[ServerOptions]) -> None:
        word.options.texts["send-proxy"] = word.placed(version)

    return Keyword(values=0, take=take)


def _refused_tls(word: Word[ServerOptions]) -> None:
    encrypted = True
    word.options.flags["ssl"] = word.placed(encrypted)
    word.statement.refuse(f"ssl: {_TLS}", word.index)


def _id(word: Word[ServerOptions]) -> None:
    given = word.read(within(1, 2**31 - 1))
    if given:
        word.options.numbers["id"] = given
        word.statement.ignore("id: servers have names here, not numbers", word.index)


def _check_sni(word: Word[ServerOptions]) -> None:
    given = word.read(dns_name)
    if given:
        word.options.texts["check-sni"] = given


_TLS: Final = (
    "connections to servers add no TLS: clients' own TLS passes through (`check-ssl` is TLS for the "
    "check only)"
)
_WITH_TLS: Final = "checks use the system's TLS settings"
_HTTP: Final = "is for HTTP, which is not read here"
_RESOLVED: Final = (
    "this machine's own resolver resolves names repeatedly, and an unknown name does not prevent the start"
)
_AGENT: Final = "server agents are not queried: set weights and states with `appliance drain|maint|ready`"

KEYWORDS: Final[Mapping[str, Keyword[ServerOptions]]] = {
    "check": _flag("check"),
    "no-check": _flag("check", value=False),
    "check-ssl": _flag("check-ssl"),
    "no-check-ssl": _flag("check-ssl", value=False),
    "check-send-proxy": _flag("check-send-proxy"),
    "no-check-send-proxy": _flag("check-send-proxy", value=False),
    "backup": _flag("backup"),
    "no-backup": _flag("backup", value=False),
    "disabled": _flag("disabled"),
    "enabled": _flag("disabled", value=False),
    "send-proxy": _proxy_header("v1"),
    "no-send-proxy": _proxy_header("none"),
    "send-proxy-v2": _proxy_header("v2"),
    "no-send-proxy-v2": _proxy_header("none"),
    "weight": _number("weight", 0, MOST_WEIGHT),
    "rise": _number("rise", 1, 1000),
    "fall": _number("fall", 1, 1000),
    "port": _number("port", 1, 65535),
    "maxconn": _number("maxconn", 0, MOST_CONNECTIONS),
    "maxqueue": _number("maxqueue", 0, MOST_CONNECTIONS),
    "error-limit": _number("error-limit", 1, 1000),
    "inter": _time("inter"),
    "fastinter": _time("fastinter"),
    "downinter": _time("downinter"),
    "slowstart": _time("slowstart"),
    "tcp-ut": _time("tcp-ut"),
    "addr": _text("addr", server_host),
    "verify": _text("verify", _one_of("none", "required")),
    "ca-file": _text("ca-file"),
    "check-sni": Keyword(values=1, take=_check_sni),
    "on-marked-down": _text("on-marked-down", _one_of("shutdown-sessions")),
    "on-marked-up": _text("on-marked-up", _one_of("shutdown-backup-sessions")),
    "observe": _text("observe", _one_of("layer4")),
    "on-error": _text("on-error", _one_of("fastinter", "fail-check", "sudden-death", "mark-down")),
    "minconn": keywords.changed(
        "the limit does not grow with the load: `maxconn` applies from the start", values=1
    ),
    "init-addr": keywords.ignored(_RESOLVED, values=1),
    "resolvers": keywords.changed(_RESOLVED, values=1),
    "resolve-opts": keywords.ignored(_RESOLVED, values=1),
    "resolve-prefer": keywords.changed("addresses are tried in the resolver's own order", values=1),
    "resolve-net": keywords.refused(
        "addresses of a name are not selected by network: write the address", values=1
    ),
    "ssl": Keyword(values=0, take=_refused_tls),
    "track": keywords.refused(
        "a server does not copy another server's state: write `check` with the same address and port",
        values=1,
    ),
    "agent-check": keywords.refused(f"{_AGENT}; remove it"),
    "send-proxy-v2-ssl": keywords.refused("there is no TLS to report: write `send-proxy-v2`"),
    "send-proxy-v2-ssl-cn": keywords.refused("there is no TLS to report: write `send-proxy-v2`"),
    "proxy-v2-options": keywords.refused("the header has no optional fields: remove it", values=1),
    "socks4": keywords.refused("connections to servers are direct: remove it", values=1),
    "namespace": keywords.refused("a server cannot select a network namespace: remove it", values=1),
    "source": keywords.refused(
        "the system chooses the source address of connections: set it on the route (`ip route ... src`)",
        values=1,
    ),
    "usesrc": keywords.refused(
        "servers see our address: write `send-proxy-v2` if they can read it", values=1
    ),
    "verifyhost": keywords.changed("the name is checked if `check-sni` asks for it", values=1),
    "sni": keywords.ignored("has no effect without `ssl`", values=1),
    "id": Keyword(values=1, take=_id),
    "cookie": keywords.ignored(_HTTP, values=1),
    "redir": keywords.ignored(_HTTP, values=1),
    "proto": keywords.ignored(_HTTP, values=1),
    "ws": keywords.ignored(_HTTP, values=1),
    "alpn": keywords.ignored(_WITH_TLS, values=1),
    "check-alpn": keywords.ignored(_WITH_TLS, values=1),
    "check-proto": keywords.ignored(_HTTP, values=1),
    "check-via-socks4": keywords.refused("checks connect directly: remove it"),
    "log-proto": keywords.ignored("applies to logs", values=1),
    **{
        name: keywords.ignored(_AGENT, values=1)
        for name in ("agent-send", "agent-inter", "agent-addr", "agent-port")
    },
    "no-agent-check": keywords.kept(),
    **{
        name: keywords.ignored(_HTTP, values=1)
        for name in ("max-reuse", "pool-low-conn", "pool-max-conn", "pool-purge-delay")
    },
    **{name: keywords.ignored("no table keeps sessions on a server") for name in ("non-stick", "stick")},
    **{
        name: keywords.ignored(_WITH_TLS, values=1)
        for name in ("ciphers", "ciphersuites", "crl-file", "crt", "npn", "ssl-max-ver", "ssl-min-ver")
    },
    **{
        name: keywords.ignored(_WITH_TLS)
        for name in (
            *keywords.TLS_SWITCHES,
            "no-ssl",
            "no-ssl-reuse",
            "no-verifyhost",
            "ssl-reuse",
            "tls-tickets",
            "no-send-proxy-v2-ssl",
            "no-send-proxy-v2-ssl-cn",
        )
    },
    **{name: keywords.ignored("TCP Fast Open is not used") for name in ("tfo", "no-tfo")},
}
"""The keywords of a server, by name."""
