"""journald as the reader of our output: it takes the priority of a line from its start (sd-daemon(3)).

A line that begins with `<4>` is a warning for journald, which removes these characters; then
`journalctl -p warning` finds it. Other readers would show them, so they are written only for journald.
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
    """The severities of syslog (RFC 5424 section 6.2.1) that we use."""

    ERROR = 3
    WARNING = 4
    INFO = 6
    DEBUG = 7


def listens(descriptor: int) -> bool:
    """Return whether journald reads what is written to a descriptor.

    The variable JOURNAL_STREAM does not suffice: a worker that got another output later has the old
    environment.
    """
    try:
        if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            return False
        with socket.socket(fileno=os.dup(descriptor)) as connection:
            peer = connection.getpeername()
    except OSError:  # closed, or an unconnected socket
        return False
    return isinstance(peer, str) and _PLACE.search(peer) is not None


def marked(text: str, severity: SyslogSeverity) -> str:
    """Return a text with the severity at the start of each of its lines."""
    return "".join(f"<{severity:d}>{line}" for line in text.splitlines(keepends=True))


def levelled(text: str, severity: SyslogSeverity, descriptor: int) -> str:
    """Return a text for the reader of this descriptor: marked for journald, else unchanged."""
    return marked(text, severity) if listens(descriptor) else text
