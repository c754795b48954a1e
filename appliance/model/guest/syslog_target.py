"""The property `syslog`: the server that gets the machine's journal."""

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from appliance.model.config.values.addresses import server_host
from appliance.model.messages.quoting import shown

_PORT: Final = 514
_PROTOCOLS: Final = ("udp", "tcp")
_RIGHT: Final = "must be udp://HOST:PORT or tcp://HOST:PORT"


@dataclass(frozen=True, slots=True, kw_only=True)
class SyslogTarget:
    """The server: `protocol` is udp or tcp."""

    protocol: str
    host: str
    port: int


def syslog_target(text: str) -> SyslogTarget:
    """Return the server of a URL, or of a host alone: udp, and port 514; raises ValueError."""
    try:
        parts = urlsplit(text if "://" in text else f"udp://{text}")
        port = parts.port
    except ValueError:
        raise ValueError(f"{_RIGHT}, not {shown(text)}") from None
    if parts.scheme == "tls":
        raise ValueError(f"{shown(text)}: the journal is sent by udp or tcp only")
    if parts.scheme not in _PROTOCOLS or not parts.hostname or port == 0 or parts.path.strip("/"):
        raise ValueError(f"{_RIGHT}, not {shown(text)}")
    return SyslogTarget(protocol=parts.scheme, host=server_host(parts.hostname), port=port or _PORT)
