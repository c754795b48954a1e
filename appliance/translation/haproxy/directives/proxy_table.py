"""Every directive of `defaults`, `frontend`, `listen` and `backend`: its meaning, and where it is allowed.

The table follows configuration.txt, 4.1. A directive in a section where HAProxy ignores it is ignored here
too, and reported.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Flag, auto
from typing import Final

from appliance.translation.haproxy.directives import (
    balancing,
    binds,
    checks,
    dialogue_checks,
    rules,
    servers,
    settings,
    stats,
)
from appliance.translation.haproxy.directives.section import CheckKind, Kind, Level
from appliance.translation.haproxy.directives.statement import Handler, changed, ignored, refused
from appliance.translation.haproxy.text.lines import Line


class AllowedIn(Flag):
    """Sections in which a directive is allowed."""

    DEFAULTS = auto()
    CLIENTS = auto()
    SERVERS = auto()
    FRONTENDS = DEFAULTS | CLIENTS
    BACKENDS = DEFAULTS | SERVERS
    ALL = DEFAULTS | CLIENTS | SERVERS

    def includes(self, kind: Kind) -> bool:
        """Return whether a section of this kind is among them."""
        return bool(self & _KINDS[kind])


_KINDS: Final[Mapping[Kind, AllowedIn]] = {
    Kind.DEFAULTS: AllowedIn.DEFAULTS,
    Kind.FRONTEND: AllowedIn.CLIENTS,
    Kind.BACKEND: AllowedIn.SERVERS,
    Kind.LISTEN: AllowedIn.CLIENTS | AllowedIn.SERVERS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Directive:
    """The effect of a directive, and where it is allowed; `negatable` is whether `no` may precede it."""

    handle: Handler
    place: AllowedIn
    negatable: bool = False


def _directives(
    place: AllowedIn, found: Mapping[str, Handler], *, negatable: bool = False
) -> dict[str, Directive]:
    return {
        name: Directive(handle=handle, place=place, negatable=negatable) for name, handle in found.items()
    }


def _each(names: str, handler: Handler) -> dict[str, Handler]:
    return dict.fromkeys((each.strip() for each in names.split(",")), handler)


_HTTP: Final = ignored("it is for HTTP, which is not read here: bytes pass through unchanged")
_LOG: Final = ignored("logging is configured in the section `log` of our own file")
_MAIL: Final = ignored("no mail is sent: the log, `appliance status` and the metrics report the same")
_PAGE: Final = changed(
    "the statistics are our own: /metrics, /api/v1/status, and HAProxy's figures at any `;csv`"
)
_FILTERS: Final = refused("the bytes cannot be filtered: remove it")
_NO_CHECK: Final = refused(
    "this check is not supported: write `option tcp-check` with the texts to send and expect, or "
    "`option httpchk`"
)
_SPLICE: Final = ignored("bulk data is spliced whenever that is faster")
_STATE_FILE: Final = ignored("server states survive reloads and restarts here")
_BUFFERS: Final = ignored("it tunes HAProxy's internals")
_PERSIST: Final = ignored("there is no persistence by cookie")

PROXY: Final[Mapping[str, Directive]] = {
    **_directives(
        AllowedIn.ALL,
        {
            "mode": settings.text("mode", settings.mode),
            "disabled": settings.disabled,
            "enabled": settings.enabled,
            "default_backend": settings.text("default_backend"),
            "description": ignored("it is informational only"),
            "id": ignored("sections have names here, not numbers"),
            "bind-process": ignored("each worker serves all frontends of its group"),
            "filter": _FILTERS,
            "option tcplog": _LOG,
            "tcp-request content": rules.content,
            "tcp-request inspect-delay": settings.inspect_delay,
            "stats enable": stats.enable,
            "stats uri": stats.uri,
            "stats auth": stats.auth,
            "stats admin": stats.admin,
            "stats scope": stats.scope,
            "stats http-request": rules.request(Level.STATS),
            "http-request": rules.request(Level.REQUEST),
            "tcp-request connection": rules.connection(Level.CONNECTION),
            "tcp-request session": rules.connection(Level.SESSION),
            "acl": rules.acl,
            "stick-table": balancing.stick_table,
            "rate-limit": refused("connection rates are not limited: remove it, and write `maxconn`"),
            **_each(
                "stats hide-version, stats realm, stats refresh, stats show-desc,"
                "stats show-legends, stats show-node, stats show-modules, stats show-version",
                _PAGE,
            ),
            **_each(
                "capture, compression, declare, errorfile, errorfiles, errorloc, errorloc302, errorloc303,"
                "http-after-response, http-error, http-response, http-reuse, http-send-name-header, redirect,"
                "timeout http-keep-alive, timeout http-request, timeout tarpit, unique-id-format,"
                "unique-id-header, max-keep-alive-queue, use-fcgi-app, retry-on, option forwardfor,"
                "option httplog, option httpslog, option originalto, option http-restrict-req-hdr-names",
                _HTTP,
            ),
            **_each("log-format, log-format-sd, error-log-format, log-tag, log-steps", _LOG),
            **_each("email-alert", _MAIL),
            **_each("force-persist, ignore-persist", _PERSIST),
            **_each(
                "hash-type, hash-balance-factor, hash-preserve-affinity",
                changed("our own hash keeps a client on its server while the server is up"),
            ),
        },
    ),
    **_directives(
        AllowedIn.ALL,
        {
            "log": _LOG,
            "option tcpka": settings.flag("tcpka"),
            **_each(
                "option http-buffer-request, option http-keep-alive, option http-no-delay,"
                "option http-server-close, option httpclose, option forceclose, option http-tunnel,"
                "option http-use-proxy-header",
                _HTTP,
            ),
            **_each("option splice-auto, option splice-request, option splice-response", _SPLICE),
            "option independent-streams": refused(
                "the silence of one side is not timed while the other side sends: remove it"
            ),
            "option nolinger": ignored("sockets are closed without losing data, and none is left open"),
        },
        negatable=True,
    ),
    **_directives(
        AllowedIn.CLIENTS,
        {
            "bind": binds.bind,
            "monitor fail": rules.monitor_fail,
            "use_backend": settings.use_backend,
        },
    ),
    **_directives(
        AllowedIn.FRONTENDS,
        {
            "maxconn": settings.connections,
            "backlog": _BUFFERS,
            "monitor-uri": settings.text("monitor-uri"),
            "timeout client": settings.time("client"),
            "timeout client-fin": settings.time("client-fin"),
            "timeout client-hs": ignored("it is for TLS, which is not terminated here"),
            "clitimeout": settings.time("client"),
            "clitcpka-cnt": settings.probes("clitcpka-cnt"),
            "clitcpka-idle": settings.seconds("clitcpka-idle", most=32767),
            "clitcpka-intvl": settings.seconds("clitcpka-intvl", most=32767),
            "monitor-net": refused(
                "no network is reserved for checks: let checks request the monitor's path"
            ),
        },
    ),
    **_directives(
        AllowedIn.FRONTENDS,
        {
            "option clitcpka": settings.flag("clitcpka"),
            **_each(
                "option contstats, option socket-stats, option tcp-smart-accept,"
                "option idle-close-on-response",
                _BUFFERS,
            ),
            **_each(
                "option dontlog-normal, option dontlognull, option log-separate-errors, option logasap", _LOG
            ),
            **_each(
                "option accept-invalid-http-request, option disable-h2-upgrade,"
                "option h1-case-adjust-bogus-client, option http-ignore-probes",
                _HTTP,
            ),
        },
        negatable=True,
    ),
    **_directives(
        AllowedIn.SERVERS,
        {
            "server": servers.server,
            "server-template": servers.server_template,
            "use-server": refused("a condition cannot choose a server: give the server a separate port"),
            "dispatch": refused("write `server NAME ADDRESS:PORT`"),
            "stick": balancing.stick,
        },
    ),
    **_directives(
        AllowedIn.BACKENDS,
        {
            "balance": balancing.balance,
            "default-server": servers.default_server,
            "retries": settings.number("retries", most=100),
            "timeout check": settings.time("check"),
            "timeout connect": settings.time("connect"),
            "timeout queue": settings.time("queue"),
            "timeout server": settings.time("server"),
            "timeout server-fin": settings.time("server-fin"),
            "timeout tunnel": settings.time("tunnel"),
            "contimeout": settings.time("connect"),
            "srvtimeout": settings.time("server"),
            "srvtcpka-cnt": settings.probes("srvtcpka-cnt"),
            "srvtcpka-idle": settings.seconds("srvtcpka-idle", most=32767),
            "srvtcpka-intvl": settings.seconds("srvtcpka-intvl", most=32767),
            "http-check expect": checks.http_expect,
            "http-check send": checks.http_send,
            "http-check connect": checks.http_connect,
            "http-check comment": ignored("it is informational only"),
            "http-check disable-on-404": refused(
                "a 404 fails the check: let the server answer 200, and drain it with `appliance drain`"
            ),
            "http-check send-state": ignored("checks do not send servers their state"),
            "http-check set-var": refused("checks have no variables: remove it"),
            "http-check unset-var": refused("checks have no variables: remove it"),
            "tcp-check connect": checks.tcp_connect,
            "tcp-check comment": dialogue_checks.comment,
            "tcp-check send": dialogue_checks.send,
            "tcp-check send-lf": dialogue_checks.send_format,
            "tcp-check send-binary": dialogue_checks.send_binary,
            "tcp-check expect": dialogue_checks.expect,
            **_each(
                "tcp-check send-binary-lf, tcp-check set-var, tcp-check unset-var, tcp-check set-var-fmt",
                refused("checks have no variables: remove it"),
            ),
            "option ldap-check": dialogue_checks.ldap,
            "option mysql-check": dialogue_checks.mysql,
            "option pgsql-check": dialogue_checks.postgres,
            "option redis-check": dialogue_checks.redis,
            "option smtpchk": dialogue_checks.smtp,
            "option spop-check": _NO_CHECK,
            "external-check command": settings.text("external-check command"),
            "external-check path": settings.text("external-check path"),
            "cookie": _HTTP,
            "dynamic-cookie-key": _HTTP,
            "fullconn": ignored("server limits do not grow with the load"),
            "persist": _PERSIST,
            "source": settings.source,
            "transparent": refused("write `server NAME ADDRESS:PORT`"),
            "load-server-state-from-file": _STATE_FILE,
            "server-state-file-name": _STATE_FILE,
            "tcp-response": refused("data from servers is not inspected: remove it"),
        },
    ),
    **_directives(
        AllowedIn.BACKENDS,
        {
            "option redispatch": settings.redispatch,
            "redispatch": settings.redispatch,
            "option allbackups": settings.flag("allbackups"),
            "option srvtcpka": settings.flag("srvtcpka"),
            "option log-health-checks": ignored("each change of a server's state is logged, with its check"),
            "option persist": _PERSIST,
            "option abortonclose": ignored(
                "a client that closes while waiting for a server always leaves the queue"
            ),
            "option prefer-last-server": _HTTP,
            "option checkcache": _HTTP,
            "option accept-invalid-http-response": _HTTP,
            "option h1-case-adjust-bogus-server": _HTTP,
            "option http-pretend-keepalive": _HTTP,
            "option tcp-smart-connect": _BUFFERS,
            "option transparent": refused("write `server NAME ADDRESS:PORT`"),
            "option httpchk": checks.httpchk,
            "option ssl-hello-chk": checks.ssl_hello,
            "option tcp-check": checks.kind(CheckKind.TCP_RULES),
            "option external-check": checks.kind(CheckKind.COMMAND),
        },
        negatable=True,
    ),
    "guid": Directive(handle=ignored("sections have names here"), place=AllowedIn.ALL),
}
"""The directives of proxy sections, by their name of one or two words."""


def directive_of(line: Line) -> tuple[Directive | None, int]:
    """Return the directive of a line, and the number of words in its name."""
    two = PROXY.get(" ".join(line.texts[:2])) if len(line.words) > 1 else None
    return (two, 2) if two else (PROXY.get(line.text(0)), 1)
