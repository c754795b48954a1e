"""Accepting: one watcher for each listening descriptor, a bounded number of connections for each wake-up.

Several workers share a listener, and one new connection wakes all that are idle: libev has no EPOLLEXCLUSIVE.
So to be woken for nothing is normal. A socket for each worker (SO_REUSEPORT) would avoid it, but to close
one resets the connections in its queue, and each reload closes some.

Where a limit is reached or descriptors run out nothing is watched for a while. The connections wait in the
kernel's backlog, where clients of a full server wait with HAProxy too.
"""

import os
from collections.abc import Callable
from errno import EAGAIN, ECONNABORTED, EINTR, EMFILE, ENFILE, ENOBUFS, ENOMEM
from typing import Final

from appliance.core.balancing.frontend_state import FrontendState
from appliance.model.end_reasons import EndReason
from appliance.net.data import tcp
from appliance.net.data.traffic import Traffic, Watcher
from appliance.wire import sockaddr

_READ: Final = 1
_BATCH: Final = 8
"""Connections accepted for each wake-up: more would let the open sessions wait, and leave less to others."""

_PAUSE: Final = 0.1
"""Seconds without accepting after the kernel has refused to."""

_SCARCE: Final = frozenset({EMFILE, ENFILE, ENOBUFS, ENOMEM})
_NOTHING: Final = frozenset({EAGAIN, ECONNABORTED, EINTR})
"""Another worker was faster, the client has left already, or a signal came."""


Open = Callable[[FrontendState, int, bytes], None]
"""Makes a session of a descriptor and a client's address, as the kernel writes that.

Unless it raises, the descriptor is the session's to close, and `frontend.current` the session's to count
down.
"""


class Acceptor:
    """Accepts on one listener for one frontend, and owns its descriptor until `close`."""

    def __init__(
        self, traffic: Traffic, frontend: FrontendState, descriptor: int, *, open_session: Open
    ) -> None:
        self.frontend = frontend
        self.descriptor = descriptor
        self._traffic = traffic
        self._open = open_session
        self._watcher: Watcher | None = None
        self._watching = False
        self.resume_at = 0.0
        self.place = ("", 0)  # the address that the listener is bound to, as its master writes it

    def start(self) -> None:
        """Accept from now on."""
        self._watcher = self._traffic.loop.io(self.descriptor, _READ)
        self.resume()

    def resume(self) -> bool:
        """Accept again after a pause; return whether the reason for the pause is still there."""
        if self._watcher is None or self._watching:
            return False
        if self.frontend.full or self._traffic.full or self._traffic.now < self.resume_at:
            return True
        self._watching = True
        self._watcher.start(self._on_ready)
        return False

    def close(self) -> None:
        """Accept no more and close the listener; others who hold it go on."""
        if self._watcher is not None:
            self._watcher.close()
            self._watcher = None
        self._watching = False
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def _on_ready(self) -> None:
        try:
            self._accept()
        except Exception as error:  # noqa: BLE001  # the boundary: the listener is ready again at once
            self._traffic.fault(error)

    def _accept(self) -> None:
        frontend, traffic = self.frontend, self._traffic
        room = traffic.limit - len(traffic.live)
        if frontend.limit:
            room = min(room, frontend.limit - frontend.current)
        for _ in range(min(room, _BATCH)):
            fd = tcp.accept(self.descriptor)
            if fd < 0:
                self._accept_failed(-fd)
                return
            self._check_access(fd)
        if frontend.full or traffic.full:
            self._pause()

    def _check_access(self, fd: int) -> None:
        frontend, traffic = self.frontend, self._traffic
        address = tcp.peer()
        counted = 0
        traffic.changed = True
        try:
            if frontend.access_lists is not None and not frontend.access_lists.admits(
                sockaddr.packed(address)
            ):
                self._deny(fd)
                return
            frontend.total += 1
            frontend.current += 1
            counted = 1
            self._open(frontend, fd, address)
        except Exception as error:  # noqa: BLE001  # the boundary: a bug costs one connection, not the listener
            traffic.fault(error)
            frontend.current -= counted
            self._give_up(fd)

    def _deny(self, fd: int) -> None:
        self.frontend.denied += 1
        self._traffic.reasons[EndReason.DENIED] += 1
        tcp.reset(fd)

    def _give_up(self, fd: int) -> None:
        """Reset a connection that a bug has kept from becoming a session."""
        tcp.reset(fd)
        self.frontend.failed += 1
        self._traffic.reasons[EndReason.INTERNAL] += 1

    def _accept_failed(self, code: int) -> None:
        if code in _NOTHING:
            return
        if code in _SCARCE:
            self._traffic.reasons[EndReason.NO_DESCRIPTORS] += 1
        self.resume_at = self._traffic.now + _PAUSE
        self._pause()
        self._traffic.accept_failed(code)

    def _pause(self) -> None:
        """Watch nothing until `resume`.

        The watcher is level-triggered: a listener with a connection in its queue that is not accepted would
        wake the loop again at once, and for ever.
        """
        self._traffic.reasons[EndReason.ACCEPT_PAUSED] += 1
        self._traffic.changed = True
        self._traffic.paused = True
        self._watching = False
        if self._watcher is not None:
            self._watcher.stop()
