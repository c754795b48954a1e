"""The directives of the section `global` (configuration.txt, 3): process settings with a meaning here."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from appliance.model.config.values.field_types import MOST_CONNECTIONS
from appliance.model.messages.quoting import shown
from appliance.translation.haproxy.directives.section import Placed
from appliance.translation.haproxy.text.lines import Line
from appliance.translation.haproxy.text.report import Report
from appliance.translation.haproxy.text.variables import Variables
from appliance.translation.haproxy.values.quantities import milliseconds, within
from appliance.translation.translation import Outcome


@dataclass(slots=True, kw_only=True)
class Global:
    """The settings of the section `global` that have a meaning here. `drain` is in milliseconds."""

    drain: Placed[int] | None = None
    max_connections: Placed[int] | None = None
    authorities: str = ""
    servers_verified: bool = True
    socket: Placed[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GlobalStatement:
    """A line of `global` that is being read."""

    line: Line
    found: Global
    report: Report
    variables: Variables

    def note(self, outcome: Outcome, reason: str, index: int = 0) -> None:
        """Report the outcome of the line."""
        self.report.add(outcome, self.line.at(index), reason)

    def number(self, reader: Callable[[str], int]) -> Placed[int] | None:
        """Return the first argument as a number; if it is none, refuse the line and return None."""
        try:
            return Placed(value=reader(self.line.text(1)), place=self.line.at(1))
        except ValueError as error:
            self.note(Outcome.REFUSED, str(error), 1)
            return None


GlobalHandler = Callable[[GlobalStatement], None]


def global_directive(statement: GlobalStatement, known: Mapping[str, GlobalHandler]) -> bool:
    """Apply a line of `global`; return whether its directive is known."""
    handler = known.get(" ".join(statement.line.texts[:2])) or known.get(statement.line.text(0))
    if handler is None and statement.line.text(0).startswith(_FAMILIES):
        statement.note(Outcome.IGNORED, _TUNED)
        return True
    if handler is None:
        return False
    handler(statement)
    return True


def _ignored(reason: str) -> GlobalHandler:
    return lambda statement: statement.note(Outcome.IGNORED, reason)


def _refused(reason: str) -> GlobalHandler:
    return lambda statement: statement.note(Outcome.REFUSED, reason)


def _max_connections(statement: GlobalStatement) -> None:
    statement.found.max_connections = statement.number(within(0, MOST_CONNECTIONS))


def _drain(statement: GlobalStatement) -> None:
    statement.found.drain = statement.number(milliseconds)


def _authorities(statement: GlobalStatement) -> None:
    statement.found.authorities = statement.line.text(1)


def _server_verify(statement: GlobalStatement) -> None:
    statement.found.servers_verified = statement.line.text(1) != "none"


def _set_variable(statement: GlobalStatement) -> None:
    name, value = statement.line.text(1), statement.line.text(2)
    if not name or (statement.line.text(0) == "presetenv" and statement.variables.value(name) is not None):
        return
    statement.variables.set(name, value)


_PROCESS: Final = "whoever starts the appliance sets its processes, users and privileges"
_TUNED: Final = "it tunes HAProxy's internals"
_TLS: Final = "TLS is not terminated here"
_LOG: Final = "logging is configured in the section `log` of our own file"
_FAMILIES: Final = (
    "tune.",
    "ssl-default-",
    "ssl-",
    "httpclient.",
    "profiling.",
    "51degrees-",
    "deviceatlas-",
    "wurfl-",
    "h1-",
    "h2-",
    "quic-",
    "limited-",
    "debug.",
)


def _each(names: str, handler: GlobalHandler) -> dict[str, GlobalHandler]:
    return dict.fromkeys(names.split(), handler)


GLOBAL: Final[Mapping[str, GlobalHandler]] = {
    "maxconn": _max_connections,
    "hard-stop-after": _drain,
    "ca-base": _authorities,
    "ssl-server-verify": _server_verify,
    "stats socket": _ignored(
        "`appliance status|drain|maint|ready` replaces it; a socket for HAProxy's own commands is "
        "configured in the section `stats` of our own file"
    ),
    "stats timeout": _ignored("commands have their own deadline"),
    "stats bind-process": _ignored(_TUNED),
    "stats maxconn": _ignored("the number of its connections is limited anyway"),
    "setenv": _set_variable,
    "presetenv": _set_variable,
    "unsetenv": lambda statement: statement.variables.unset(statement.line.texts[1:]),
    "resetenv": lambda statement: statement.variables.keep_only(statement.line.texts[1:]),
    **_each("log log-send-hostname log-tag", _ignored(_LOG)),
    **_each(
        "chroot daemon gid group uid user pidfile ulimit-n fd-hard-limit strict-limits set-dumpable"
        " insecure-fork-wanted insecure-setuid-wanted unix-bind cpu-map cpu-policy cpu-set nbproc nbthread"
        " thread-group thread-groups thread-hard-limit numa-cpu-mapping master-worker mworker-max-reloads"
        " mworker-prealloc default-path prealloc-fd harden.reject-privileged-ports.tcp"
        " harden.reject-privileged-ports.quic",
        _ignored(_PROCESS),
    ),
    **_each(
        "busy-polling max-spread-checks spread-checks maxcompcpuusage maxcomprate maxpipes maxzlibmem"
        " no-memory-trimming noepoll noevports nogetaddrinfo nokqueue nopoll noreuseport nosplice nosmp quiet"
        " zero-warning warn-blocked-traffic-after expose-experimental-directives"
        " expose-deprecated-directives anonkey cluster-secret localpeer stats-file shm-stats-file"
        " pp2-never-send-local grace close-spread-time set-var set-var-fmt force-cfg-parser-pause"
        " no-quic dns-accept-family",
        _ignored(_TUNED),
    ),
    **_each("crt-base key-base issuers-chain-path maxsslconn maxsslrate", _ignored(_TLS)),
    **_each("node description", _ignored("it is informational only")),
    **_each(
        "server-state-base server-state-file",
        _ignored("server states survive reloads and restarts here"),
    ),
    **_each(
        "external-check lua-load lua-load-per-thread lua-prepend-path setcap",
        _ignored("it has no effect alone: lines that use it are judged separately"),
    ),
    **_each(
        "maxconnrate maxsessrate",
        _refused("connection rates are not limited: remove it, and write `maxconn`"),
    ),
}
"""The directives of `global`, by their name of one or two words."""


def verified_path(found: Global, name: str) -> str:
    """Return the path of a CA file (`ca-file`), below `ca-base` if relative; raises ValueError."""
    if name.startswith("@"):
        raise ValueError(
            f"{shown(name)}: write the path of the system's file, such as /etc/ssl/certs/ca-certificates.crt"
        )
    path = name if name.startswith("/") or not found.authorities else f"{found.authorities}/{name}"
    if not path.startswith("/"):
        raise ValueError(f"{shown(name)}: write the absolute path")
    return path
