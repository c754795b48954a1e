"""The two connections of a session: as sockets of this process, and as the kernel's rules name them."""

import contextlib
import errno
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from appliance.core.migration.ruleset import Ends
from appliance.migrate import tcp_repair
from appliance.migrate.tcp_repair import TOO_MUCH, CannotMove
from appliance.wire.lines.moving_sessions import MOST_HELD, MovingSession, MovingSide
from appliance.wire.session_migration import Migrating
from appliance.wire.tcp_state import MOST_QUEUED, TcpState

_MAPPED: Final = "::ffff:"
_END_UNREAD: Final = "the end of its data is not read yet"


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
        """Return its connections as rules name them; raises CannotMove if one has ended, and OSError."""
        return [ends_of(each) for each in self.sockets]

    def state(self) -> Migrating:
        """Return what the other node must know. Packets are held back. Raises CannotMove and OSError."""
        near, far = self.session.client, self.session.server
        client, client_ended = tcp_repair.state_of(self.client)
        if self.server is None or far is None:
            if client_ended:
                raise CannotMove(_END_UNREAD)
            return Migrating(session=self.session, client=client, server=None)
        server, server_ended = tcp_repair.state_of(self.server)
        if server_ended and not far.eof:
            far, server, client = _read_to_the_end(far, server, client)
        if client_ended and not near.eof:
            near, client, server = _read_to_the_end(near, client, server)
        session = msgspec.structs.replace(self.session, client=near, server=far)
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


def _read_to_the_end(
    side: MovingSide, state: TcpState, other: TcpState
) -> tuple[MovingSide, TcpState, TcpState]:
    """Have all that a peer has sent before its FIN wait for the other one: no FIN is restored."""
    rest = side.backlog + state.received
    if not rest:
        raise CannotMove(_END_UNREAD)
    cut = max(0, len(rest) - MOST_HELD)
    unsent = other.unsent + rest[:cut]
    if len(unsent) > MOST_QUEUED:
        raise CannotMove(TOO_MUCH)
    return (
        msgspec.structs.replace(side, backlog=rest[cut:], eof=True, count=side.count + len(state.received)),
        msgspec.structs.replace(state, received=b""),
        msgspec.structs.replace(other, unsent=unsent, sent_next=(other.sent_next + cut) % (1 << 32)),
    )


def restored(migrating: Migrating) -> Connections:
    """Return the connections of another node's session, which send nothing yet; raises OSError."""
    client = tcp_repair.restored(migrating.client)
    try:
        server = tcp_repair.restored(migrating.server) if migrating.server is not None else None
    except BaseException:
        tcp_repair.close_silently(client)
        raise
    return Connections(session=migrating.session, client=client, server=server)


def require_from(connections: Connections, address: str, local: Callable[[str], bool]) -> None:
    """Raise CannotMove if its connection to the server does not come from the virtual IP, or ends here.

    `local` returns whether a server's address is this node's, as `is_local` does.
    """
    if connections.server is None:
        return
    here, _, there, _ = _ends_reversed(connections.server)
    if here != address:
        raise CannotMove("it connects to its server from this node's own address (`source: virtual-ip`)")
    if local(there):
        raise CannotMove("its server is on this node")


def ends_of(connection: socket.socket) -> Ends:
    """Return a connection as rules name it; raises CannotMove if it has ended."""
    here, port, there, peer_port = _ends_reversed(connection)
    return (there, peer_port, here, port)


def address_of(migrating: Migrating) -> str:
    """Return the address by which the client of another node's session has come."""
    return _plain(migrating.client.local.host)


def of_states(migrating: Migrating) -> Iterator[Ends]:
    """Yield the connections of another node's session as rules name them."""
    for each in (migrating.client, migrating.server):
        if each is not None:
            yield (_plain(each.peer.host), each.peer.port, _plain(each.local.host), each.local.port)


def _ends_reversed(connection: socket.socket) -> Ends:
    try:
        here, peer = connection.getsockname(), connection.getpeername()
    except OSError as error:
        if error.errno != errno.ENOTCONN:
            raise
        raise CannotMove("one of its connections has ended, whose last data is here") from None
    return (_plain(here[0]), here[1], _plain(peer[0]), peer[1])


def _plain(host: str) -> str:
    """Return an address without scope, IPv4 in IPv6 as IPv4 (RFC 4291, section 2.5.5.2)."""
    return host.partition("%")[0].removeprefix(_MAPPED)


def is_local(address: str) -> bool:
    """Return whether this node has the address."""
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as trial:
        try:
            trial.bind((address, 0))
        except OSError:
            return False
    return True
