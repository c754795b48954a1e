"""journald at the other end of an output, which learns from a line itself how bad it is (sd-daemon(3)).

A line that begins with `<4>` is a warning to journald, which shows it without these characters: so
`journalctl -p warning` finds it. Everybody else would show them: a line has them only where journald reads.
"""

import os
import re
import socket
import stat
from enum import IntEnum
from typing import Final

# journald's own socket, or that of a journal namespace (LogNamespace=).
_PLACE: Final = re.compile(r"/systemd/journal(\.[^/]+)?/stdout$")


class SyslogSeverity(IntEnum):
    """syslog's severities (RFC 5424 s.6.2.1), as many as we tell apart."""

    ERROR = 3
    WARNING = 4
    INFO = 6
    DEBUG = 7


def listens(descriptor: int) -> bool:
    """Return whether journald reads what is written to a descriptor.

    JOURNAL_STREAM would not do: a worker that was handed another output has the environment of the first.
    """
    try:
        if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            return False
        with socket.socket(fileno=os.dup(descriptor)) as connection:
            peer = connection.getpeername()
    except OSError:  # closed, or a socket that is connected to nobody
        return False
    return isinstance(peer, str) and _PLACE.search(peer) is not None


def marked(text: str, severity: SyslogSeverity) -> str:
    """Return a text with the severity at the start of each of its lines."""
    return "".join(f"<{severity:d}>{line}" for line in text.splitlines(keepends=True))


def levelled(text: str, severity: SyslogSeverity, descriptor: int) -> str:
    """Return a text in the form for whoever reads the descriptor."""
    return marked(text, severity) if listens(descriptor) else text
