"""With which frontend and pool a session of an older generation goes on: by name, or by what took the place.

The name comes first. Where it is gone, a session goes on with the frontend that would accept its client now,
at the address that the client has connected to: so a frontend that was renamed keeps its sessions. A pool
that is gone was renamed where the frontend's pool has the same server, by name and address. What is found
neither way has no place here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from appliance.core.balancing.frontend_state import FrontendState
from appliance.net.listening.bind_addresses import Address, same_or_covers
from appliance.wire.lines.moving_sessions import MovingSession
from appliance.wire.lines.worker_arguments import InheritedListener
from appliance.worker.relay import tcp
from appliance.worker.relay.backend import Backend


class NoPlaceError(Exception):
    """Neither the frontend nor one in its stead is served here, or its pool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivalPlaces:
    """The frontends and pools of one worker, by name, and what it listens on."""

    frontends: Mapping[str, FrontendState]
    backends: Mapping[str, Backend]
    listeners: Sequence[InheritedListener]

    def of(self, session: MovingSession, client: int) -> tuple[FrontendState, Backend]:
        """Return where a session goes on; `client` is a descriptor of its client. Raises NoPlaceError."""
        frontend = self.frontends.get(session.frontend) or self._accepting(client)
        if frontend is None:
            raise NoPlaceError(f"no frontend {session.frontend}")
        backend = self.backends.get(session.pool) or self._renamed(session, frontend)
        if backend is None:
            raise NoPlaceError(f"no pool {session.pool}")
        return frontend, backend

    def _accepting(self, client: int) -> FrontendState | None:
        host, port = tcp.local_address(client)
        local = Address(host.removeprefix("::ffff:"), port)  # of IPv4 on a socket of IPv6 (RFC 4291 2.5.5.2)
        found = [each for each in self.listeners if same_or_covers(Address(each.host, each.port), local)]
        found.sort(key=lambda each: each.host != local.host)  # the kernel passes over a wildcard for it
        relaying = (self.frontends[each.frontend] for each in found)
        return next((each for each in relaying if each.config.pool is not None), None)

    def _renamed(self, session: MovingSession, frontend: FrontendState) -> Backend | None:
        named = (self.backends.get(each) for each in frontend.config.pools)
        backends, member = [each for each in named if each is not None], session.member
        if member is None:
            # One that waits in a queue takes any server, but not of another server name's pool.
            return backends[0] if len(frontend.config.pools) == 1 and backends else None
        place = (member.name, member.host, member.port)
        return next((each for each in backends if place in _places(each)), None)


def _places(backend: Backend) -> set[tuple[str, str, int]]:
    return {(each.name, each.host, each.port) for each in backend.pool.config.servers}
