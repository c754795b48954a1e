"""Notifications to systemd for a service of Type=notify, if it has given us a socket (sd_notify(3)).

The variables are removed from the environment, so that no program that we start sends notifications for the
service.
"""

import os
import socket
from collections.abc import MutableMapping
from typing import Final

_SOCKET: Final = "NOTIFY_SOCKET"
_PERIOD: Final = "WATCHDOG_USEC"
_PROCESS: Final = "WATCHDOG_PID"
_PATIENCE: Final = 5.0  # seconds for a message that must not be lost
_SHARE: Final = 3  # of the period: systemd advises half of it at most


class ServiceManager:
    """The notifications of one service; without systemd's socket it does nothing."""

    def __init__(self, environment: MutableMapping[str, str]) -> None:
        self._address = environment.pop(_SOCKET, "")
        self._given = period = environment.pop(_PERIOD, "")
        process = environment.pop(_PROCESS, "")
        ours = not process or process == str(os.getpid())
        self._pause = int(period) / 1e6 / _SHARE if period.isdigit() and ours else None
        self._next = 0.0
        self._ready_sent = False

    def ready(self) -> None:
        """Notify systemd, once, that the start is complete."""
        if not self._ready_sent:
            self._ready_sent = self._notify("READY=1")

    def alive(self, now: float) -> None:
        """Notify systemd's watchdog that we are alive, when due; called at each turn of the main loop."""
        if self._pause is not None and now >= self._next:
            self._next = now + self._pause
            self._notify("WATCHDOG=1")

    def stopping(self) -> None:
        """Notify systemd that the service is stopping."""
        self._notify("STOPPING=1")

    def main_process(self, pid: int) -> None:
        """Notify systemd that another process is now the main one, and the only one that systemd listens to.

        Wait if systemd is busy: without this message it would take our exit for the service's end.
        """
        self._notify(f"MAINPID={pid}", patience=_PATIENCE)

    def environment(self) -> dict[str, str]:
        """Return the variables with which a process of the same service can send these notifications."""
        given = {_SOCKET: self._address, _PERIOD: self._given}
        return {name: value for name, value in given.items() if value}

    def _notify(self, text: str, *, patience: float = 0.0) -> bool:
        """Send a notification, waiting that many seconds for room; return False if it was not taken."""
        if not self._address:
            return True
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.settimeout(patience)
            try:
                sender.sendto(text.encode(), address)
            except OSError:
                return False  # systemd will notice without it, and nothing here depends on it
        return True
