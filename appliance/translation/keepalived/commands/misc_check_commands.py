"""What the command of a MISC_CHECK checks on a server: a URL or a port."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from appliance.model.config.values.addresses import server_endpoint
from appliance.translation.keepalived.commands.check_commands import recognised

_HERE: Final = {4: "127.0.0.1", 6: "::1"}
_BEFORE: Final = r"(?<![0-9A-Za-z:._-])"
_BEHIND: Final = r"(?![0-9A-Za-z._-]|:[0-9A-Fa-f]*:)"
_LOCAL: Final = re.compile(rf"{_BEFORE}(localhost|127\.0\.0\.1|::1){_BEHIND}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerQuestion:
    """A check of ours: `type` tcp, http or https, at a port of the server; `path` is for http.

    `timeout`: seconds that the command sets. `any_status`: every answer is good. `unverified`: the command
    would verify the certificate.
    """

    type: str
    port: int
    path: str = ""
    timeout: str | None = None
    any_status: bool = False
    unverified: bool = False


def asked_of(host: str, words: Sequence[str]) -> ServerQuestion | None:
    """Return what a command checks on the server with this address, None if that is uncertain.

    Commands that check this machine are parsed already. So the server's address is replaced by this
    machine's, and a command that names this machine itself is not recognised.
    """
    if any(_LOCAL.search(each) for each in words):
        return None
    own = re.compile(_BEFORE + re.escape(host) + _BEHIND, re.IGNORECASE)
    here = _HERE[6 if ":" in host else 4]
    found = recognised([own.sub(here, each) for each in words])
    if found is None or found.kind not in ("tcp", "http"):
        return None
    if found.kind == "tcp":
        asked = server_endpoint(found.target)
        return (
            ServerQuestion(type="tcp", port=asked.port, timeout=found.timeout) if asked.host == here else None
        )
    url = urlsplit(found.target)
    return ServerQuestion(
        type=url.scheme,
        port=url.port or (443 if url.scheme == "https" else 80),
        path=(url.path or "/") + (f"?{url.query}" if url.query else ""),
        timeout=found.timeout,
        any_status=found.any_status,
        unverified=found.unverified,
    )
