"""Sections of haproxy.cfg that serve no connection, and what becomes of them with us."""

from collections.abc import Mapping
from typing import Final

from appliance.translation.translation import Outcome

_HTTP: Final = (Outcome.IGNORED, "it is for HTTP, which is not read here")
_TLS: Final = (Outcome.IGNORED, "no TLS is ended here")
_LOG: Final = (Outcome.IGNORED, "what is logged is said in the section `log` of our own file")

OTHERS: Final[Mapping[str, tuple[Outcome, str]]] = {
    "peers": (Outcome.IGNORED, "there are no tables to share: what would use them is judged by itself"),
    "resolvers": (Outcome.IGNORED, "names are asked for of this machine's own resolver (/etc/resolv.conf)"),
    "userlist": (Outcome.IGNORED, "users are for HTTP; what asks for them is judged by itself"),
    "mailers": (
        Outcome.IGNORED,
        "no mail is sent: the log, `appliance status` and the metrics tell the same",
    ),
    "cache": _HTTP,
    "http-errors": _HTTP,
    "fcgi-app": _HTTP,
    "ring": _LOG,
    "traces": _LOG,
    "log-profile": _LOG,
    "crt-store": _TLS,
    "acme": _TLS,
    "program": (Outcome.IGNORED, "other programs are not started here: start it by a unit of systemd"),
    "log-forward": (Outcome.REFUSED, "logs of others are not passed on: leave that to rsyslog or journald"),
}
"""The outcome of each line of a section, by the section's first word."""
