"""Accepts one connection when the poller finds a listener ready, and more if that is not enough.

An address has an accept queue for each worker. The worker gets the events of its own queue, and polls the
others' now and then (`neglected_queues.py`). If several workers must share a queue, the kernel wakes one
sleeping worker, always the one that has watched the queue longest (EPOLLEXCLUSIVE), so each goes to the end
of that line after a few connections.

A worker that is alone takes more with each successive turn that finds a connection, which saves turns. Others
take one and get an event for the next: hardly any call finds none.

When a limit is reached or descriptors run out, nothing is watched for a while. The connections wait in the
kernel's backlog, where clients of a full server wait with HAProxy too.
"""

import os
from collections.abc import Callable
from errno import EAGAIN, ECONNABORTED, EINTR, EMFILE, ENFILE, ENOBUFS, ENOMEM
from typing import Final

from appliance.core.balancing.frontend_state import FrontendState
from appliance.model.accept_claims import AcceptClaim
from appliance.model.end_reasons import EndReason
from appliance.wire import sockaddr
from appliance.worker.relay.all_sessions import Traffic
from appliance.worker.relay.poll_events import CONNECTION_WAITS
from appliance.worker.relay.poller import Pollable
from appliance.worker.relay.raw_sockets import accept, peer, reset

_BATCH: Final = 8
"""Most connections in one turn: more would make the open sessions wait."""

_IN_A_ROW: Final = 16
"""Connections after which a worker goes to the end of the line, which costs two system calls."""

_PAUSE: Final = 0.1
"""Seconds without accepting after the kernel refused to accept."""

_SCARCE: Final = frozenset({EMFILE, ENFILE, ENOBUFS, ENOMEM})
_NOTHING: Final = frozenset({EAGAIN, ECONNABORTED, EINTR})
"""Another worker was faster, the client has left already, or a signal came."""


Open = Callable[[FrontendState, int, bytes], None]
"""Makes a session from a descriptor and a client's address in the kernel's format.

Unless it raises, the session must close the descriptor and decrement `frontend.current`.
"""


class Acceptor(Pollable):
    """Accepts on one listener for one frontend, and owns its descriptor until `close`.

    `claim` says which connections the other workers on this listener leave to it.
    """

    def __init__(
        self,
        traffic: Traffic,
        frontend: FrontendState,
        descriptor: int,
        *,
        open_session: Open,
        claim: AcceptClaim = AcceptClaim.SOLE,
    ) -> None:
        self.frontend = frontend
        self.descriptor = descriptor
        self._traffic = traffic
        self._open = open_session
        self._started = False
        self._watching = False
        self.claim = claim
        self._rotates = claim is AcceptClaim.EQUAL
        self._most = _BATCH if claim is AcceptClaim.SOLE else 1
        self._in_a_row = 0
        self._batch = 1
        self._last_turn = 0
        self.turn = 0
        self.resume_at = 0.0
        self.place = ("", 0)  # the address that the listener is bound to, as its master spells it

    def start(self) -> None:
        """Accept from now on."""
        self._started = True
        self.resume()

    def resume(self) -> bool:
        """Accept again after a pause; return whether the reason for the pause persists."""
        if not self._started or self._watching:
            return False
        if self.frontend.is_full() or self._traffic.is_full() or self._traffic.now < self.resume_at:
            return True
        self._watch()
        return False

    def pause_if_full(self) -> None:
        """Leave the line while accepting nothing: a worker woken without accepting wakes no other."""
        if self._watching and (self.frontend.is_full() or self._traffic.is_full()):
            self._pause()

    def close(self) -> None:
        """Accept no more and close the listener; other processes that hold it continue."""
        self._started = False
        self._unwatch()
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def on_events(self, events: int) -> None:  # noqa: ARG002  # there is one kind
        """Accept the waiting connection."""
        try:
            self._accept()
        except Exception as error:  # noqa: BLE001  # the boundary: the listener is ready again at once
            self._traffic.fault(error)

    def take(self, most: int) -> None:
        """Accept up to so many waiting connections, without an event that there are any."""
        try:
            while most > 0 and not self.frontend.is_full() and not self._traffic.is_full():
                most -= 1
                fd = accept(self.descriptor)
                if fd < 0:
                    self._accept_failed(-fd)
                    return
                self._check_access(fd)
        except Exception as error:  # noqa: BLE001  # the boundary: as in `on_events`
            self._traffic.fault(error)

    def _accept(self) -> None:
        frontend, traffic = self.frontend, self._traffic
        turn = traffic.poller.turn
        self._batch = min(2 * self._batch, self._most) if turn == self._last_turn + 1 else 1
        self._last_turn = turn
        for _ in range(self._batch):
            if frontend.is_full() or traffic.is_full():
                self._pause()
                return
            fd = accept(self.descriptor)
            if fd < 0:
                self._last_turn = 0
                self._accept_failed(-fd)
                return
            self._in_a_row += 1
            self._check_access(fd)
        if frontend.is_full() or traffic.is_full():
            self._pause()
            traffic.pause_full()
        elif self._rotates and self._in_a_row >= _IN_A_ROW and self._watching:
            self._unwatch()
            self._watch()

    def _check_access(self, fd: int) -> None:
        frontend, traffic = self.frontend, self._traffic
        address = peer()
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
        reset(fd)

    def _give_up(self, fd: int) -> None:
        """Reset a connection that a bug kept from becoming a session."""
        reset(fd)
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
        """Watch nothing until `resume`: a connection in the queue would wake the loop for ever."""
        self._traffic.reasons[EndReason.ACCEPT_PAUSED] += 1
        self._traffic.changed = True
        self._traffic.paused = True
        self._unwatch()

    def _watch(self) -> None:
        self._in_a_row = 0
        try:
            self._traffic.poller.register(self.descriptor, self, CONNECTION_WAITS)
            self._watching = True
        except OSError as error:  # the kernel adds no more watched descriptors for a while
            self._accept_failed(error.errno or ENOMEM)

    def _unwatch(self) -> None:
        """Leave the line; closing does not unregister a descriptor that other processes hold too."""
        if self._watching:
            self._watching = False
            self._traffic.poller.unregister(self.descriptor)
