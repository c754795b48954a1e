"""Messages of syslog, RFC 5424, and their frames on TCP, RFC 6587 section 3.4.1."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

LONGEST: Final = 2048
"""Bytes of a message that every receiver should accept (section 6.1)."""

_DAEMON: Final = 3  # the facility, section 6.2.1
_PARAMETERS: Final = "event@32473"  # 32473 is the enterprise number of examples, RFC 5612
_LAST: Final = 253402300799.0  # the end of the year 9999: RFC 3339 has four digits


def encode(
    *, severity: int, when: float, host: str, program: str, kind: str, values: Mapping[str, str], text: str
) -> bytes:
    """Return a message; `severity` is syslog's, `when` Unix seconds, `values` become its structured data."""
    moment = datetime.fromtimestamp(max(0.0, min(when, _LAST)), UTC).isoformat(timespec="microseconds")
    name = f"appliance-{program}" if program else "appliance"
    words = (moment.replace("+00:00", "Z"), _word(host, 255), _word(name, 48), "-", _word(kind, 32))
    data = "".join(f' {key}="{_escaped(value)}"' for key, value in values.items() if value)
    head = f"<{_DAEMON * 8 + severity}>1 {' '.join(words)} [{_PARAMETERS}{data}] ".encode()
    return head + _whole(text.encode(errors="replace"), max(0, LONGEST - len(head)))


def framed(message: bytes) -> bytes:
    """Return a message prefixed by its length, for a stream."""
    return b"%d %s" % (len(message), message)


def _word(text: str, longest: int) -> str:
    """Return a field of the header: printable ASCII without spaces (section 6), `-` for nothing."""
    return "".join(each for each in text if "!" <= each <= "~")[:longest] or "-"


def _escaped(value: str) -> str:
    """Return the value of a parameter (section 6.3.3)."""
    safe = value.encode(errors="replace").decode()
    return safe.replace("\\", "\\\\").replace('"', '\\"').replace("]", "\\]")


def _whole(text: bytes, longest: int) -> bytes:
    """Return the start of a text, cut between two characters."""
    return text[:longest].decode(errors="ignore").encode()
