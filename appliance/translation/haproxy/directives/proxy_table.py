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
    rules,
    servers,
    settings,
    stats,
    talking_checks,
)
from appliance.translation.haproxy.directives.section import CheckKind, Kind, Level
from appliance.translation.haproxy.directives.statement import Handler, changed, ignored, refused
from appliance.translation.haproxy.text.line import Line


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


_HTTP: Final = ignored("it is for HTTP, which is not read here: bytes go through as they are")
_LOG: Final = ignored("what is logged is said in the section `log` of our own file")
_MAIL: Final = ignored("no mail is sent: the log, `appliance status` and the metrics tell the same")
_PAGE: Final = changed("what is shown is ours: /metrics, /api/v1/status, and HAProxy's figures at any `;csv`")
_FILTERS: Final = refused("nothing can be put into the way of the bytes: leave it out")
_NO_CHECK: Final = refused(
    "no such check is made: write `option tcp-check` with what to send and to expect, or `option httpchk`"
)
_SPLICE: Final = ignored("bulk is moved by splice whenever that is faster")
_STATE_FILE: Final = ignored("states of servers outlive reloads and restarts with us")
_BUFFERS: Final = ignored("it tunes what HAProxy does inside")
_PERSIST: Final = ignored("there are no cookies to be persistent by")

PROXY: Final[Mapping[str, Directive]] = {
    **_directives(
        AllowedIn.ALL,
        {
            "mode": settings.mode,
            "disabled": settings.disabled,
            "enabled": settings.enabled,
            "default_backend": settings.default_backend,
            "description": ignored("it is for people"),
            "id": ignored("sections have names with us, not numbers"),
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
            "rate-limit": refused(
                "connections are not limited by their rate: leave it out, and write `maxconn`"
            ),
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
                changed("a client stays at its server while it is up, by our own hash"),
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
                "silence of one side alone is not measured while the other one sends: leave it out"
            ),
            "option nolinger": ignored("sockets are closed so that no data is lost, and none is left over"),
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
            "monitor-uri": rules.monitor_uri,
            "timeout client": settings.time("client"),
            "timeout client-fin": settings.time("client-fin"),
            "timeout client-hs": ignored("it is for TLS that is ended here"),
            "clitimeout": settings.time("client"),
            "clitcpka-cnt": settings.probes("clitcpka-cnt"),
            "clitcpka-idle": settings.seconds("clitcpka-idle", most=32767),
            "clitcpka-intvl": settings.seconds("clitcpka-intvl", most=32767),
            "monitor-net": refused("clients are not told apart for checks: let them ask the monitor's path"),
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
            "use-server": refused("a server is not chosen by a condition: give it a port of its own"),
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
            "http-check connect": checks.connect,
            "http-check comment": ignored("it is for people"),
            "http-check disable-on-404": refused(
                "a 404 is bad: let the server answer 200, and drain it by hand"
            ),
            "http-check send-state": ignored("servers are not told their state"),
            "http-check set-var": refused("checks have no variables: leave it out"),
            "http-check unset-var": refused("checks have no variables: leave it out"),
            "tcp-check connect": checks.connect,
            "tcp-check comment": talking_checks.comment,
            "tcp-check send": talking_checks.send,
            "tcp-check send-lf": talking_checks.send_format,
            "tcp-check send-binary": talking_checks.send_binary,
            "tcp-check expect": talking_checks.expect,
            **_each(
                "tcp-check send-binary-lf, tcp-check set-var, tcp-check unset-var, tcp-check set-var-fmt",
                refused("checks have no variables: leave it out"),
            ),
            "option ldap-check": talking_checks.ldap,
            "option mysql-check": talking_checks.mysql,
            "option pgsql-check": talking_checks.postgres,
            "option redis-check": talking_checks.redis,
            "option smtpchk": talking_checks.smtp,
            **_each("option spop-check, option external-check", _NO_CHECK),
            **_each(
                "external-check", ignored("no command checks servers; the option is refused where it stands")
            ),
            "cookie": _HTTP,
            "dynamic-cookie-key": _HTTP,
            "fullconn": ignored("limits of servers do not grow with the load"),
            "persist": _PERSIST,
            "source": settings.source,
            "transparent": refused("write `server NAME ADDRESS:PORT`"),
            "load-server-state-from-file": _STATE_FILE,
            "server-state-file-name": _STATE_FILE,
            "tcp-response": refused("what servers send is not looked at: leave it out"),
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
            "option abortonclose": ignored("who closes while waiting for a server leaves the queue, always"),
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
        },
        negatable=True,
    ),
    "guid": Directive(handle=ignored("sections have names with us"), place=AllowedIn.ALL),
}
"""The directives of proxy sections, by their name of one or two words."""


def directive_of(line: Line) -> tuple[Directive | None, int]:
    """Return the directive of a line, and the number of words in its name."""
    two = PROXY.get(" ".join(line.texts[:2])) if len(line.words) > 1 else None
    return (two, 2) if two else (PROXY.get(line.text(0)), 1)
