"""The listeners of a worker: an acceptor for each, and the handling of its accepted connections.

A frontend with a pool gets sessions, with `clients` in the pool of the client's network, with `sni` once the
server name is known; one with `respond` is answered by the worker itself.
"""

import os
import select
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final

from appliance.core.balancing.frontend_state import FrontendState
from appliance.model.accept_claims import AcceptClaim
from appliance.wire import sockaddr
from appliance.wire.lines.worker_arguments import InheritedListener
from appliance.worker.relay import tcp
from appliance.worker.relay.acceptor import Acceptor, Open
from appliance.worker.relay.all_sessions import Traffic
from appliance.worker.relay.backend import Backend
from appliance.worker.relay.hello_wait import HelloWait
from appliance.worker.relay.responder import Responder
from appliance.worker.relay.session.session import Session

_MOST: Final = 16
"""Most connections taken from one queue at a time, beginning with one: more would make its own ones wait."""


class NeglectedQueues:
    """Accept queues of workers that hang, have exited or are full; how many each may lose at the next poll.

    They are polled, as the kernel would wake every worker that watches a queue for each connection.
    """

    def __init__(self) -> None:
        self._acceptors: dict[int, Acceptor] = {}
        self._poll = select.poll()
        self._waiting: dict[int, int] = {}

    def add(self, acceptor: Acceptor) -> None:
        """Poll a queue from now on."""
        self._acceptors[acceptor.descriptor] = acceptor
        self._poll.register(acceptor.descriptor, select.POLLIN)

    def remove(self, acceptor: Acceptor) -> None:
        """Poll it no more; call this before it is closed."""
        if self._acceptors.pop(acceptor.descriptor, None):
            self._poll.unregister(acceptor.descriptor)

    def __len__(self) -> int:
        return len(self._acceptors)

    def are_waited_in(self) -> bool:
        """Return whether a client waits in one of them."""
        return bool(self._poll.poll(0))

    def look(self) -> None:
        """Take some connections from queues that have some now and had some at the last poll."""
        if not self._acceptors:
            return
        before, self._waiting = self._waiting, {}
        for descriptor, _ in self._poll.poll(0):
            most = before.get(descriptor, 0)
            self._acceptors[descriptor].take(most)
            self._waiting[descriptor] = min(2 * most, _MOST) or 1


class Acceptors:
    """All acceptors of a worker. `frontends` and `backends` are the worker's, by name, and stay current."""

    def __init__(
        self,
        traffic: Traffic,
        *,
        frontends: Mapping[str, FrontendState],
        backends: Mapping[str, Backend],
    ) -> None:
        self._traffic, self._frontends, self._backends = traffic, frontends, backends
        self._acceptors: list[Acceptor] = []
        self._neglected = NeglectedQueues()
        traffic.make_room = self.resume
        traffic.pause_full = self.pause_full

    def inherit(self, listeners: Iterable[InheritedListener]) -> None:
        """Make an acceptor for each listener that the master left open for us; none accepts yet."""
        for listener in listeners:
            os.set_inheritable(listener.fd, False)  # noqa: FBT003  # the standard library's signature
            # O_NONBLOCK belongs to the open file, which all workers share: a worker that is woken for a
            # connection that another one has taken would otherwise wait in accept4, and all its sessions with
            # it.
            os.set_blocking(listener.fd, False)  # the same
            frontend = self._frontends[listener.frontend]
            acceptor = Acceptor(
                self._traffic,
                frontend,
                listener.fd,
                open_session=self._opening(frontend),
                claim=listener.claim,
            )
            acceptor.place = (listener.host, listener.port)
            self._acceptors.append(acceptor)

    @property
    def descriptors(self) -> list[int]:
        """Descriptors of the listeners that are still open; empty once all are closed."""
        return [acceptor.descriptor for acceptor in self._acceptors]

    def start(self) -> None:
        """Accept from now on."""
        # Not earlier: the options affect every process that accepts on these listeners.
        self.set_options()
        for acceptor in self._acceptors:
            if acceptor.claim is AcceptClaim.SPARE:
                self._neglected.add(acceptor)
            else:
                acceptor.start()

    def help_others(self) -> None:
        """Take connections that wait too long in the queues of other workers."""
        self._neglected.look()

    @property
    def waits_elsewhere(self) -> Callable[[], bool] | None:
        """What returns whether clients wait in the queues of others, None if there are none."""
        return self._neglected.are_waited_in if self._neglected else None

    def set_options(self) -> None:
        """Set the listeners' socket options; on Linux an accepted connection inherits them.

        TCP_DEFER_ACCEPT is not among them: it would hold back clients that wait for the server's first bytes.
        """
        for acceptor in self._acceptors:
            config = acceptor.frontend.config
            wanted = tcp.options(config.keepalive, config.tcp_user_timeout)
            tcp.set_options(acceptor.descriptor, tcp.NO_OPTIONS + tcp.accepted(wanted))

    def resume(self) -> None:
        """Accept again wherever a limit or a shortage of descriptors had stopped it and is over."""
        paused = [acceptor for acceptor in self._acceptors if acceptor.resume()]
        self._traffic.paused = bool(paused)

    def pause_full(self) -> None:
        """Stop accepting wherever a limit is reached."""
        for acceptor in self._acceptors:
            acceptor.pause_if_full()

    def close(self, *, keep: frozenset[tuple[str, int]] = frozenset()) -> None:
        """Close the listeners, except those at the addresses in `keep`."""
        staying = [each for each in self._acceptors if each.place in keep]
        for acceptor in self._acceptors:
            if acceptor not in staying:
                self._neglected.remove(acceptor)
                acceptor.close()
        self._acceptors = staying

    def _opening(self, frontend: FrontendState) -> Open:
        """Return the handler of a frontend's connections: chosen once, not per connection."""
        if frontend.config.respond is not None:
            return self._respond
        otherwise: Open = self._inspect if frontend.config.sni else self._relay
        return partial(self._route, otherwise) if frontend.config.clients else otherwise

    def _route(self, otherwise: Open, frontend: FrontendState, fd: int, address: bytes) -> None:
        """Relay to the pool of the client's network; `otherwise` gets a client without one."""
        pool = frontend.client_routes.pool(sockaddr.packed(address))
        if pool is None:
            otherwise(frontend, fd, address)
        else:
            self._relay_to(pool, frontend, fd, address)

    def _inspect(self, frontend: FrontendState, fd: int, address: bytes) -> None:
        HelloWait(self._traffic, frontend, fd, address, relay=self._relay_to).begin()

    def _relay_to(self, pool: str, frontend: FrontendState, fd: int, address: bytes) -> None:
        Session(self._traffic, frontend, self._backends[pool], fd, address).begin()

    def _relay(self, frontend: FrontendState, fd: int, address: bytes) -> None:
        Session(self._traffic, frontend, self._backends[frontend.pool], fd, address).begin()

    def _respond(self, frontend: FrontendState, fd: int, address: bytes) -> None:
        needs = frontend.config.needs
        Responder(self._traffic, frontend, self._backends[needs].pool if needs else None, fd, address)
