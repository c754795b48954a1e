"""The events of epoll(7) that are asked for, and what they mean of a TCP socket (tcp_poll)."""

import select
from typing import Final

READABLE: Final = select.EPOLLIN
WRITABLE: Final = select.EPOLLOUT
URGENT: Final = select.EPOLLPRI
"""Urgent data has arrived: reads stop before it."""

FIN: Final = select.EPOLLRDHUP
"""The peer's FIN has arrived, behind what there is to read; with ERROR it means nothing."""

ERROR: Final = select.EPOLLERR
"""The connection was reset, or the kernel has given it up."""

EDGE_TRIGGERED: Final = select.EPOLLET
"""Tell each change once. It is bit 31, and does not fit a C int."""

INCOMING: Final = READABLE | URGENT | FIN | EDGE_TRIGGERED
"""What a session asks for of a connection that takes what is written: it always has room at first."""

ALL: Final = INCOMING | WRITABLE
"""What it asks for of a connect that is under way, and where something is held for a connection."""

CONNECTION_WAITS: Final = READABLE | select.EPOLLEXCLUSIVE
"""What is asked for of a listener: told again while one waits, and to one worker of those that sleep."""
