"""What systemd is told of a service of Type=notify, where it has given a socket for it (sd_notify(3)).

The variables are taken out of the environment: what we start does not speak for the service.
"""

import os
import socket
from collections.abc import MutableMapping
from typing import Final

_SOCKET: Final = "NOTIFY_SOCKET"
_PERIOD: Final = "WATCHDOG_USEC"
_PROCESS: Final = "WATCHDOG_PID"
_SHARE: Final = 3  # of the period: systemd advises half of it at the most


class ServiceManager:
    """The notifications of one service; does nothing where nobody asked for them."""

    def __init__(self, environment: MutableMapping[str, str]) -> None:
        self._address = environment.pop(_SOCKET, "")
        period, process = environment.pop(_PERIOD, ""), environment.pop(_PROCESS, "")
        ours = not process or process == str(os.getpid())
        self._pause = int(period) / 1e6 / _SHARE if period.isdigit() and ours else None
        self._next = 0.0
        self._said_ready = False

    def ready(self) -> None:
        """Say once that the start is over."""
        if not self._said_ready:
            self._said_ready = True
            self._say("READY=1")

    def alive(self, now: float) -> None:
        """Say so as often as it is asked for; to be called each time that the main loop goes round."""
        if self._pause is not None and now >= self._next:
            self._next = now + self._pause
            self._say("WATCHDOG=1")

    def stopping(self) -> None:
        """Say that the end has begun."""
        self._say("STOPPING=1")

    def _say(self, text: str) -> None:
        if not self._address:
            return
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sender:
            try:
                sender.sendto(text.encode(), address)
            except OSError:
                return  # it will find out by itself, and nothing here depends on it
