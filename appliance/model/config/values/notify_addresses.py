"""Where the section `notify` sends to: URLs of webhooks, addresses of syslog servers.

Every function takes whatever the file holds, returns the value, and raises ValueError with a message that
says what would be right; it never repeats a URL, which may be a secret.
"""

from typing import Final
from urllib.parse import urlsplit

WEBHOOK_PATTERN: Final = "^https?://[!-~]+$"
SYSLOG_PATTERN: Final = "^(/|udp://|tcp://|tls://)"
_LONGEST: Final = 2000
_LONGEST_LABEL: Final = 63  # RFC 1035 s.2.3.4


def webhook_url(value: object) -> str:
    """Return an http or https URL with a host, without a user, a password or a fragment."""
    if not isinstance(value, str) or len(value) > _LONGEST:
        raise ValueError("must be a URL: https://HOST/PATH")
    if not value.isascii() or not value.isprintable() or " " in value:
        raise ValueError("must be a URL of printable ASCII characters without spaces: https://HOST/PATH")
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:
        raise ValueError("must be a URL with a valid host and port: https://HOST:PORT/PATH") from None
    if parts.scheme not in ("http", "https") or not _is_host(parts.hostname) or port == 0:
        raise ValueError("must be an http or https URL with a host: https://HOST/PATH")
    if parts.username is not None or parts.fragment:
        raise ValueError("must be a URL without a user and a fragment; a token goes into `token_file`")
    return value


def syslog_address(value: object) -> str:
    """Return the path of a socket, or a URL udp://HOST:PORT, tcp://HOST:PORT or tls://HOST:PORT."""
    right = "must be udp://HOST:PORT, tcp://HOST:PORT, tls://HOST:PORT, or the path of a socket"
    if not isinstance(value, str) or not value.isascii() or not value.isprintable() or len(value) > _LONGEST:
        raise ValueError(right)
    if value.startswith("/"):
        return value
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:
        raise ValueError(right) from None
    rest = (parts.path, parts.query, parts.fragment, parts.username)
    if parts.scheme not in ("udp", "tcp", "tls") or not _is_host(parts.hostname) or not port or any(rest):
        raise ValueError(right)
    return value


def _is_host(name: str | None) -> bool:
    """Return whether a resolver can be asked for a host: for an empty or a longer label IDNA raises."""
    labels = (name or "").removesuffix(".").split(".")
    return all(0 < len(each) <= _LONGEST_LABEL for each in labels)
