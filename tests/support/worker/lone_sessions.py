"""Sessions in the process of the test: what a whole worker's tests cannot bring about at will."""

import socket
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from random import Random

from support.processes.greenlets import until
from support.values.snapshots import frontend, pool, server
from support.worker.lone_worker import up

from appliance.core.balancing.frontend_state import FrontendState
from appliance.core.balancing.pool_member import PoolMember
from appliance.core.balancing.pool_state import PoolState
from appliance.worker.relay import raw_sockets
from appliance.worker.relay.all_sessions import Traffic
from appliance.worker.relay.backend import Backend
from appliance.worker.relay.session.session import Session


class LoneSessions:
    """A frontend, a pool whose servers the test accepts for, and their sessions."""

    def __init__(
        self,
        stack: ExitStack,
        *,
        servers: int = 1,
        each: Mapping[str, object] | None = None,
        **changes: object,
    ) -> None:
        self.faults: list[Exception] = []
        self.traffic = Traffic(
            descriptors=100, fault=self.faults.append, accept_failed=print, make_room=print
        )
        self.frontend = FrontendState(frontend("front"), workers=1, index=0)
        self._stack = stack
        self._clients = self.listen()
        self.origins = [self.listen() for _ in range(servers)]
        ports = [origin.getsockname()[1] for origin in self.origins]
        given = [server(f"s{number}", port=port, **(each or {})) for number, port in enumerate(ports)]
        config = pool("pool", servers=given, **changes)
        state = PoolState(config, workers=1, index=0, random=Random(1))  # noqa: S311  # unused
        state.observe({("pool", each.name): up(config, each) for each in config.servers})
        self.backend = Backend(state)

    @property
    def member(self) -> PoolMember:
        """The first server."""
        return self.backend.pool.members[0]

    def listen(self) -> socket.socket:
        """Return a listener."""
        return self._stack.enter_context(socket.create_server(("127.0.0.1", 0)))

    def session(self, first: bytes = b"") -> tuple[socket.socket, Session]:
        """Return a client that has sent its first bytes, and its session, which has begun."""
        client = self._stack.enter_context(socket.create_connection(self._clients.getsockname(), timeout=10))
        client.sendall(first)
        fd = raw_sockets.accept(self._clients.fileno())
        self.frontend.current += 1
        session = Session(self.traffic, self.frontend, self.backend, fd, raw_sockets.peer())
        session.begin()
        return client, session

    def server(self, position: int = 0) -> socket.socket:
        """Return the server's end of the next connection."""
        connection, _ = self.origins[position].accept()
        connection.settimeout(10)
        return self._stack.enter_context(connection)

    def until(self, condition: Callable[[], object]) -> None:
        """Run the loop until the condition holds."""

        def ticked() -> object:
            self.traffic.tick()
            return condition()

        until(ticked, pause=0.001)
