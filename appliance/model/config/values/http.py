"""Values of HTTP in a configuration: a method, a path, a host header, a URL, expected statuses and text.

Every function takes whatever the file holds, returns the value, and raises ValueError with a message that
says what would be right. No value of a request can contain a line break, which would end one of its lines.
"""

import re
from typing import Final

from appliance.model.config.values.addresses import host, server_endpoint
from appliance.model.messages.quoting import shown

LONGEST_BODY_TEXT: Final = 1024
"""Most bytes of a text that a body must have."""

STATUSES_PATTERN: Final = r"^[1-5][0-9]{2}(-[1-5][0-9]{2})?$"

_METHOD: Final = re.compile(r"[A-Z]{1,20}")
_PATH: Final = re.compile(r"/[!-~]*")
_USER: Final = re.compile(r"//.*@", re.DOTALL)
_DIGEST: Final = re.compile(r"[0-9A-Fa-f]{32}", re.ASCII)
_URL: Final = re.compile(r"https?://(\[[^]]*\]|[^:/?#]*)(?::([0-9]+))?(?:/[!-~]*)?", re.ASCII)
_STATUSES: Final = re.compile(r"([1-5][0-9]{2})(?:-([1-5][0-9]{2}))?", re.ASCII)

Statuses = tuple[tuple[int, int], ...]


def method(value: object) -> str:
    """Return a request method."""
    if isinstance(value, str) and _METHOD.fullmatch(value):
        return value
    raise ValueError(f"must be a method in capitals, such as `GET`, not {shown(value)}")


def path(value: object) -> str:
    """Return a path with its query: visible ASCII that begins with a slash."""
    if isinstance(value, str) and _PATH.fullmatch(value):
        return value
    raise ValueError(f"must be a path such as `/readyz`, without spaces, not {shown(value)}")


def host_header(value: object) -> str:
    """Return a Host header: a name or an address, with or without a port."""
    text = value if isinstance(value, str) else ""
    name, _, port = text.rpartition(":")
    if text.endswith("]") or not port.isdecimal():
        return host(value) if "[" not in text else f"[{host(text)}]"
    bare = host(name)
    return f"[{bare}]:{port}" if ":" in bare else f"{bare}:{port}"


def url(value: object) -> str:
    """Return a URL of http or https: an address or a name, with or without port and path."""
    match = _URL.fullmatch(value) if isinstance(value, str) else None
    # A URL with a user is refused; the message must not show the password that may stand before the `@`.
    harmless = _USER.sub("//...@", value, count=1) if isinstance(value, str) else value
    fault = f"must be a URL such as `https://localhost:6443/readyz`, not {shown(harmless)}"
    if match is None:
        raise ValueError(fault)
    try:
        server_endpoint(f"{match[1]}:{match[2] or 80}")
    except ValueError as error:
        raise ValueError(fault) from error
    return match[0]


def body_text(value: object) -> str:
    """Return a text to look for in the body of an answer, as UTF-8."""
    if not isinstance(value, str) or not value:
        raise ValueError(f"must be a text such as `ok`, not {shown(value)}")
    if len(value.encode()) > LONGEST_BODY_TEXT:
        raise ValueError(f"must be {LONGEST_BODY_TEXT} bytes or less, and {shown(value)} is longer")
    return value


def body_digest(value: object) -> str:
    """Return an MD5 digest in lower-case hexadecimal digits."""
    text = value if isinstance(value, str) else ""
    if not _DIGEST.fullmatch(text):
        raise ValueError("must be an MD5 digest, 32 hexadecimal digits in quotes, as `genhash` prints it")
    return text.lower()


def statuses(value: object) -> Statuses:
    """Return inclusive ranges of statuses: `200-399`, 200, or a list of such."""
    if not isinstance(value, list):
        return (_statuses(value),)
    if not value:
        raise ValueError("must name at least one status, such as `200-399`")
    return tuple(_statuses(item) for item in value)


def _statuses(value: object) -> tuple[int, int]:
    match = _STATUSES.fullmatch(str(value)) if isinstance(value, str | int) else None
    if match is None:
        raise ValueError(f"must be a status or a range such as `200-399`, not {shown(value)}")
    low, high = int(match[1]), int(match[2] or match[1])
    if low > high:
        raise ValueError(f"{shown(value)} is upside down: `{high}-{low}`")
    return low, high
