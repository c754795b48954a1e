"""The two connections of a session: as sockets of this process, and as the kernel's rules name them."""

import contextlib
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from appliance.core.migration.ruleset import Ends
from appliance.migrate import tcp_repair
from appliance.migrate.tcp_repair import CannotMove
from appliance.wire.lines.moving_sessions import MovingSession
from appliance.wire.session_migration import Migrating

_MAPPED: Final = "::ffff:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Connections:
    """The sockets of one session, which the one who made it closes; without `server` it waits for one."""

    session: MovingSession
    client: socket.socket
    server: socket.socket | None

    @property
    def sockets(self) -> tuple[socket.socket, ...]:
        """Return its sockets, the client's first."""
        return (self.client,) if self.server is None else (self.client, self.server)

    def ends(self) -> list[Ends]:
        """Return its connections as rules name them; raises OSError if one has ended."""
        return [ends_of(each) for each in self.sockets]

    def state(self) -> Migrating:
        """Return what the other node must know. Packets are held back. Raises CannotMove and OSError."""
        session = self.session
        client = tcp_repair.state_of(self.client, end_read=session.client.eof)
        server = None
        if self.server is not None and session.server is not None:
            server = tcp_repair.state_of(self.server, end_read=session.server.eof)
        return Migrating(session=session, client=client, server=server)

    def reset_if_lost(self, *, wanted: bool) -> None:
        """Have the end of this process reset the connections, while no other process has them."""
        for each in self.sockets:
            with contextlib.suppress(OSError):  # it has ended
                tcp_repair.reset_if_lost(each, wanted=wanted)

    def close(self) -> None:
        """Close our copies: another process has them too, or they have ended."""
        for each in self.sockets:
            each.close()

    def close_silently(self) -> None:
        """Close connections that another node has now."""
        for each in self.sockets:
            with contextlib.suppress(OSError):
                tcp_repair.close_silently(each)


def received(sessions: Sequence[MovingSession], descriptors: Sequence[int]) -> list[Connections]:
    """Return the sessions with their sockets, which are the descriptors that came with them."""
    left = iter(descriptors)
    return [
        Connections(
            session=each,
            client=socket.socket(fileno=next(left)),
            server=socket.socket(fileno=next(left)) if each.server is not None else None,
        )
        for each in sessions
    ]


def restored(migrating: Migrating) -> Connections:
    """Return the connections of another node's session, which send nothing yet; raises OSError."""
    client = tcp_repair.restored(migrating.client)
    try:
        server = tcp_repair.restored(migrating.server) if migrating.server is not None else None
    except BaseException:
        tcp_repair.close_silently(client)
        raise
    return Connections(session=migrating.session, client=client, server=server)


def require_from(connections: Connections, address: str) -> None:
    """Raise CannotMove if its connection to the server does not come from the virtual IP, or ends here."""
    if connections.server is None:
        return
    here, _, there, _ = _ends_reversed(connections.server)
    if here != address:
        raise CannotMove("it connects to its server from this node's own address (`source: virtual-ip`)")
    if _is_local(there):
        raise CannotMove("its server is on this node")


def ends_of(connection: socket.socket) -> Ends:
    """Return a connection as rules name it."""
    here, port, there, peer_port = _ends_reversed(connection)
    return (there, peer_port, here, port)


def of_states(migrating: Migrating) -> Iterator[Ends]:
    """Yield the connections of another node's session as rules name them."""
    for each in (migrating.client, migrating.server):
        if each is not None:
            yield (_plain(each.peer.host), each.peer.port, _plain(each.local.host), each.local.port)


def _ends_reversed(connection: socket.socket) -> Ends:
    here, peer = connection.getsockname(), connection.getpeername()
    return (_plain(here[0]), here[1], _plain(peer[0]), peer[1])


def _plain(host: str) -> str:
    """Return an address without scope, IPv4 in IPv6 as IPv4 (RFC 4291, section 2.5.5.2)."""
    return host.partition("%")[0].removeprefix(_MAPPED)


def _is_local(address: str) -> bool:
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as trial:
        try:
            trial.bind((address, 0))
        except OSError:
            return False
    return True
