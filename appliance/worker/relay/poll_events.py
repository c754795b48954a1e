"""The events of epoll(7) that are asked for, and their meaning for a TCP socket (tcp_poll)."""

import select
from typing import Final

READABLE: Final = select.EPOLLIN
WRITABLE: Final = select.EPOLLOUT
URGENT: Final = select.EPOLLPRI
"""Urgent data has arrived: reads stop before it."""

FIN: Final = select.EPOLLRDHUP
"""The peer's FIN has arrived, behind the bytes still to read; with ERROR it means nothing."""

ERROR: Final = select.EPOLLERR
"""The connection was reset, or the kernel gave up on it."""

EDGE_TRIGGERED: Final = select.EPOLLET
"""Edge-triggered: report each change once. It is bit 31, and does not fit a C int."""

INCOMING: Final = READABLE | URGENT | FIN | EDGE_TRIGGERED
"""The events of a connection that takes what is written: at first it always has room."""

ALL: Final = INCOMING | WRITABLE
"""The events of a connect that is under way, and of a connection for which bytes are held."""

CONNECTION_WAITS: Final = READABLE | select.EPOLLEXCLUSIVE
"""The events of a listener: repeated while a connection waits, and sent to one sleeping worker."""
