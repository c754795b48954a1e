"""Checkers of a `real_server`: what each checks on its own."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Final, TypeVar

from appliance.model.config.values.addresses import Endpoint, dns_name
from appliance.model.config.values.http import body_digest, host_header, statuses
from appliance.model.config.values.http import path as http_path
from appliance.model.document.tree import Plain
from appliance.model.messages.problems import FilePosition
from appliance.model.messages.quoting import shown
from appliance.translation.keepalived.commands.misc_check_commands import asked_of
from appliance.translation.keepalived.meaning.directive_handling import (
    Table,
    Understood,
    apply,
    changed,
    ignored,
    refused,
)
from appliance.translation.keepalived.meaning.notify import command
from appliance.translation.keepalived.meaning.values import DirectiveError, address, only, seconds, whole
from appliance.translation.keepalived.syntax.directives import Directive
from appliance.translation.keepalived.syntax.located_text import Word
from appliance.translation.keepalived.virtual_servers.blocks import Block
from appliance.translation.keepalived.virtual_servers.check_times import (
    HTTP,
    MISC,
    MOST_NUMBER,
    TLS,
    WEB_KINDS,
    Keys,
    times,
)


def plain(keys: Keys) -> dict[str, Plain]:
    """Return the keys without their places."""
    return {key: value for key, (value, _) in keys.items()}


TCP: Final = "TCP_CHECK"
_SMTP: Final = "SMTP_CHECK"
_ANY_STATUS: Final = "100-599"
_GOOD: Final = "200-299"  # keepalived's default

_HELO: Final = "smtpchecker.keepalived.org"  # keepalived's default
_HOST_NAME: Final = re.compile(r"[A-Za-z0-9._\[\]:-]{1,255}")
_ANSWER: Final = r"^(N-[^\n]*\n)*N[ \r\n]"

_Value = TypeVar("_Value")


@dataclass(slots=True, kw_only=True)
class Checker(Block):
    """A checker while it is being read: it checks `server`, unless it names another address or port.

    `keys` are those of our check, without the requests of HTTP_GET, which are in `urls`. `sends_sni`: it
    sends the host's name in the TLS handshake. `asks` is the command of MISC_CHECK.
    """

    server: Endpoint
    keys: Keys = field(default_factory=dict)
    urls: list["Url"] = field(default_factory=list)
    sends_sni: FilePosition | None = None
    asks: Word | None = None

    def put(self, key: str, value: Plain, place: FilePosition) -> None:
        """Set a key of our check."""
        self.keys[key] = (value, place)

    @property
    def target(self) -> tuple[Plain, Plain]:
        """The address and the port that it checks."""
        host, port = self.keys.get("address"), self.keys.get("port")
        return host[0] if host else self.server.host, port[0] if port else self.server.port


@dataclass(slots=True, kw_only=True)
class Url(Block):
    """One request of HTTP_GET or SSL_GET, with its keys of our check."""

    keys: Keys = field(default_factory=dict)


def checker(given: Directive, around: Block, server: Endpoint) -> Checker:
    """Return a checker, read by the table of its kind."""
    found = Checker(head=given, ledger=around.ledger, server=server)
    kind = given.keyword
    found.put("type", _TYPES[kind], given.place)
    if kind == _SMTP:
        found.put("steps", _mail(_HELO), given.place)
    for each in given.within:
        apply(_TABLES[kind], found, each, found.ledger)
    if kind == MISC:
        _finish_command(found)
    elif kind in WEB_KINDS and not found.urls:
        raise DirectiveError("has no `url { path ... }`", given.place)
    return found


def _checked(convert: Callable[[object], _Value], word: Word) -> _Value:
    """Return our configuration's value for a word."""
    try:
        return convert(word.text)
    except ValueError as error:
        raise DirectiveError(str(error), word.place) from None


def _key(key: str, value: Callable[[Word], Plain]) -> Callable[[Checker | Url, Directive], None]:
    """Return what sets a key of our check to the value of the only word."""

    def take(found: Checker | Url, given: Directive) -> None:
        word = only(given)
        found.keys[key] = (value(word), word.place)

    return take


def _retries(found: Checker, given: Directive) -> None:
    word = only(given)
    found.numbers["retry"] = (Decimal(whole(word, least=0, most=MOST_NUMBER)), word.place)


def _url(found: Checker, given: Directive) -> None:
    url = Url(head=given, ledger=found.ledger, keys={"expect": (_GOOD, given.place)})
    found.urls.append(url)
    for each in given.within:
        apply(_URL, url, each, found.ledger)
    if "path" not in url.keys:
        raise DirectiveError("has no `path`", given.place)


def _status(url: Url, given: Directive) -> None:
    if not given.values:
        raise DirectiveError("`status_code` needs a status", given.place)
    for word in given.values:
        _checked(statuses, word)
    texts: list[Plain] = [int(each.text) if each.text.isdecimal() else each.text for each in given.values]
    url.keys["expect"] = (texts if len(texts) > 1 else texts[0], given.values[0].place)


def _host_of_url(url: Url, given: Directive) -> None:
    url.virtualhost = only(given)


def _sni(found: Checker, given: Directive) -> None:
    found.sends_sni = given.place


def _helo_name(found: Checker, given: Directive) -> None:
    word = only(given)
    if not _HOST_NAME.fullmatch(word.text):
        raise DirectiveError(f"must be a name of a host, not {shown(word.text)}", word.place)
    found.put("steps", _mail(word.text), word.place)


def _mail(name: str) -> list[Plain]:
    """Return the dialogue with a mail server, as in keepalived: banner, HELO, both with their last lines."""
    return [
        {"expect_rstring": _ANSWER.replace("N", "220")},
        {"send": f"HELO {name}\r\n", "expect_rstring": _ANSWER.replace("N", "250")},
        {"send": "QUIT\r\n"},
    ]


def _misc_path(found: Checker, given: Directive) -> None:
    if not given.values:
        raise DirectiveError("`misc_path` needs a command", given.place)
    found.asks = given.values[0]


def _misc_timeout(found: Checker, given: Directive) -> None:
    word = only(given)
    if time := seconds(word):
        found.numbers["connect_timeout"] = (time, word.place)


def _finish_command(found: Checker) -> None:
    if found.asks is None:
        raise DirectiveError("has no `misc_path`", found.head.place)
    word = found.asks
    asked = asked_of(found.server.host, command(word))
    if asked is None:
        reason = (
            "only a command that queries the server itself is supported, with curl, wget or `nc -z`: write "
            "HTTP_GET, SSL_GET or TCP_CHECK"
        )
        raise DirectiveError(reason, word.place)
    found.put("type", asked.type, word.place)
    if asked.port != found.server.port:
        found.put("port", asked.port, word.place)
    if asked.path:
        found.put("path", asked.path, word.place)
    if asked.any_status:
        found.put("expect", _ANY_STATUS, word.place)
    if asked.timeout and Decimal(asked.timeout):
        found.numbers["connect_timeout"] = (Decimal(asked.timeout), word.place)
    reason = f"no command is run: the appliance checks port {asked.port} itself (`{asked.type}`)"
    if asked.unverified:
        reason += ", and accepts any certificate: `verify: FILE` verifies it"
    found.ledger.change(word.place, reason)


def requests_of(found: Checker, *around: Block) -> list[Keys]:
    """Return the keys of each request, with the Host header of the innermost block that sets one."""
    requests = []
    for url in found.urls:
        words = (each.virtualhost for each in (url, found, *around))
        word = next((each for each in words if each is not None), None)
        host: Keys = {} if word is None else {"host": (_checked(host_header, word), word.place)}
        requests.append({**url.keys, **host})
    return requests


_FROM: Final = changed("checks come from the address that the kernel chooses")
_LOGGED: Final = ignored("the log shows each change of a server's check result")
_TEXT: Final = (
    "only `expect_body` in the appliance's YAML looks for a text in a body: leave it out, or write the pool "
    "there"
)

_TIMES: Final[Table[Checker]] = {
    **times(Checker),
    "retry": Understood(act=_retries, slip="ignores it"),
}
_CONNECTION: Final[Table[Checker]] = {
    **_TIMES,
    "connect_ip": Understood(act=_key("address", lambda word: str(address(word)))),
    "connect_port": Understood(act=_key("port", partial(whole, least=1, most=65535)), slip="ignores it"),
    "bindto": _FROM,
    "bind_port": _FROM,
    "bind_if": _FROM,
    "fwmark": refused("checks set no packet mark here: leave it out"),
    "log_all_failures": _LOGGED,
}
_WEB: Final[Table[Checker]] = {
    **_CONNECTION,
    "nb_get_retry": Understood(act=_retries),
    "url": Understood(act=_url, block=True),
    "http_protocol": ignored("checks use HTTP/1.1"),
    "fast_recovery": ignored("one good check brings a server up, and it requests each `url`"),
    "tls_compliant": ignored("how a TLS connection ends does not matter to a check"),
    "enable_sni": Understood(act=_sni),
    "sni_name": Understood(act=_key("sni", partial(_checked, dns_name))),
}
_URL: Final[Table[Url]] = {
    "path": Understood(act=_key("path", partial(_checked, http_path))),
    "status_code": Understood(act=_status),
    "virtualhost": Understood(act=_host_of_url),
    "digest": Understood(act=_key("expect_digest", partial(_checked, body_digest))),
    "regex": refused(_TEXT),
    "regex_no_match": refused(_TEXT),
    **dict.fromkeys(
        ("regex_options", "regex_stack", "regex_min_offset", "regex_max_offset"),
        ignored("belongs to `regex`"),
    ),
    "tls_compliant": ignored("how a TLS connection ends does not matter to a check"),
}
_COMMAND: Final[Table[Checker]] = {
    **_TIMES,
    "misc_path": Understood(act=_misc_path),
    "misc_timeout": Understood(act=_misc_timeout),
    "misc_dynamic": refused("a command's exit status sets no weight here: `appliance weight` does"),
    "user": ignored("no command is run, so no user is needed"),
    "log_all_failures": _LOGGED,
}

_MAIL: Final[Table[Checker]] = {**_CONNECTION, "helo_name": Understood(act=_helo_name)}

_TYPES: Final = {TCP: "tcp", HTTP: "http", TLS: "https", _SMTP: "tcp", MISC: "tcp"}
_TABLES: Final = {TCP: _CONNECTION, HTTP: _WEB, TLS: _WEB, _SMTP: _MAIL, MISC: _COMMAND}
CHECKERS: Final = tuple(_TYPES)
"""Keywords of the checkers that become our checks."""
