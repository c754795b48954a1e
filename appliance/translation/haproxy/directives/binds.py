"""`bind`: the addresses of a frontend, and their options (configuration.txt, 5.1)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from appliance.translation.haproxy.directives import keywords
from appliance.translation.haproxy.directives.keywords import Keyword, Word
from appliance.translation.haproxy.directives.section import Bind, Placed
from appliance.translation.haproxy.directives.statement import Statement
from appliance.translation.haproxy.text.report import MOST_ADDRESSES
from appliance.translation.haproxy.values.endpoints import ANY_IPV6, binds


@dataclass(slots=True, kw_only=True)
class _Options:
    """The keywords of one line."""

    ipv6: bool
    ipv6_only: bool = False
    user_timeout: Placed[int] | None = None


def bind(statement: Statement) -> None:
    """Take the addresses and options of a line."""
    given = statement.read(binds)
    if given is None:
        return
    if not statement.report.spend_addresses(sum(len(each.ports) for each in given.value)):
        statement.refuse(f"the file listens on more than {MOST_ADDRESSES} addresses", 0)
        return
    options = _Options(ipv6=any(each.host == ANY_IPV6 for each in given.value))
    keywords.take_all(statement, options, _KEYWORDS, start=1)
    if statement.report.is_refused(statement.line.number):
        return  # without a refused option, such as TLS or its interface, it would be a different listener
    statement.section.binds.append(
        Bind(
            place=given.place,
            endpoints=tuple(each for listened in given.value for each in listened.endpoints()),
            ipv6_only=options.ipv6_only,
            user_timeout=options.user_timeout,
        )
    )
    statement.report.use(statement.line.number)


def _ipv6_only(word: Word[_Options]) -> None:
    word.options.ipv6_only = word.options.ipv6


def _user_timeout(word: Word[_Options]) -> None:
    word.options.user_timeout = word.time()


_TLS: Final = (
    "TLS is not terminated here: clients' TLS passes through to the servers; remove `ssl` and its "
    "options, and let the servers present the certificate"
)
_WITH_TLS: Final = "has no effect without `ssl`"
_OURS: Final = "our workers share a socket and handle this themselves"
_UNIX: Final = "applies only to other types of sockets"

_KEYWORDS: Final[Mapping[str, Keyword[_Options]]] = {
    "v4v6": keywords.kept(),
    "v6only": Keyword(values=0, take=_ipv6_only),
    "tcp-ut": Keyword(values=1, take=_user_timeout),
    "name": keywords.ignored("logs and status show the frontend's name", values=1),
    "id": keywords.ignored("frontends have names here, not numbers", values=1),
    "ssl": keywords.refused(_TLS),
    "accept-proxy": keywords.refused(
        "PROXY headers from clients are not read here: let clients connect directly, or forward "
        "without the header"
    ),
    "accept-netscaler-cip": keywords.refused("NetScaler headers are not read here: remove it", values=1),
    "interface": keywords.refused("a bind cannot select an interface: bind to its address", values=1),
    "namespace": keywords.refused(
        "a bind cannot select a network namespace: start the appliance in it", values=1
    ),
    "transparent": keywords.refused(
        "foreign addresses cannot be bound: write an address of this machine, or one of its virtual IPs"
    ),
    "maxconn": keywords.refused(
        "limits apply to frontends, not to binds: set `maxconn` in the frontend", values=1
    ),
    **{
        name: keywords.ignored(_WITH_TLS, values=1)
        for name in (
            "alpn",
            "ca-file",
            "ca-ignore-err",
            "ca-sign-file",
            "ca-sign-pass",
            "ca-verify-file",
            "ciphers",
            "ciphersuites",
            "crl-file",
            "crt",
            "crt-ignore-err",
            "crt-list",
            "curves",
            "ecdhe",
            "npn",
            "ssl-max-ver",
            "ssl-min-ver",
            "tls-ticket-keys",
            "verify",
        )
    },
    **{
        name: keywords.ignored(_WITH_TLS)
        for name in (
            *keywords.TLS_SWITCHES,
            "generate-certificates",
            "no-ca-names",
            "prefer-client-ciphers",
            "strict-sni",
            "quic-force-retry",
        )
    },
    **{
        name: keywords.ignored(_OURS, values=1)
        for name in ("backlog", "nice", "process", "thread", "shards", "mss", "proto", "quic-cc-algo")
    },
    **{name: keywords.ignored(_OURS) for name in ("defer-accept", "tfo")},
    **{
        name: keywords.ignored(_UNIX, values=1)
        for name in ("gid", "group", "level", "mode", "severity-output", "uid", "user", "expose-fd")
    },
}
