"""Sessions on their way to another node: the messages of two `migrate`, over TLS.

The node that has the sessions offers a batch. The other one prepares it: it makes sockets with the state of
the connections, which send nothing yet, and finds workers. With `Commit` the sessions are its own, unless it
answers that they are not. A batch is known by a number that is drawn at random: a node that has lost the
connection before an answer asks about it over a new one.

A message is its length, 4 bytes in network order, and MessagePack.
"""

from typing import Annotated, Final

import msgspec

from appliance.wire.lines.moving_sessions import MOST_SESSIONS, MovingSession
from appliance.wire.tcp_state import MOST_QUEUED, TcpState

VERSION: Final = 1
"""Of these messages: the first one of a connection has it."""

PREFIX: Final = 4
"""Bytes of a length."""

BATCH_BYTES: Final = 16 << 20
"""Bytes in the queues of a batch after which no further session joins it."""

MESSAGE_LIMIT: Final = BATCH_BYTES + 2 * 2 * MOST_QUEUED + (4 << 20)
"""Most bytes of a message: such a batch, a session whose queues are full, and all else."""

_Name = Annotated[str, msgspec.Meta(max_length=256)]
_Batch = Annotated[bytes, msgspec.Meta(min_length=16, max_length=16)]
_Position = Annotated[int, msgspec.Meta(ge=0, lt=MOST_SESSIONS)]


class MigrationError(Exception):
    """A message is damaged, too long, or not expected now."""


class Migrating(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One session with its connections; without `server` it waits for one."""

    session: MovingSession
    client: TcpState
    server: TcpState | None

    @property
    def queued(self) -> int:
        """Return how many bytes go with its connections."""
        return self.client.queued + (self.server.queued if self.server is not None else 0)


class Hello(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The first message of a connection, in both directions; `run` is new with each start of the program."""

    version: int
    run: _Batch


class Offer(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A batch of sessions of a proxy program."""

    batch: _Batch
    program: _Name
    sessions: Annotated[tuple[Migrating, ...], msgspec.Meta(max_length=MOST_SESSIONS)]


class Prepared(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """For each session "" if it can be taken, or why not."""

    refused: Annotated[
        tuple[Annotated[str, msgspec.Meta(max_length=1000)], ...], msgspec.Meta(max_length=100)
    ]


class Commit(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The sessions that are the receiver's from now on, by their positions; it drops the others."""

    batch: _Batch
    places: Annotated[tuple[_Position, ...], msgspec.Meta(max_length=MOST_SESSIONS)]


class Ask(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Were the sessions of a batch taken? If they were not, they never will be."""

    batch: _Batch


class Settled(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Whether the sessions of a batch were taken."""

    taken: bool


Message = Hello | Offer | Prepared | Commit | Ask | Settled

_DECODER: Final = msgspec.msgpack.Decoder(Message)
_ENCODER: Final = msgspec.msgpack.Encoder()


def encode(message: Message) -> bytes:
    """Return a message with its length."""
    data = _ENCODER.encode(message)
    return len(data).to_bytes(PREFIX, "big") + data


def length(prefix: bytes) -> int:
    """Return the length of the message that follows; raises MigrationError."""
    found = int.from_bytes(prefix, "big")
    if found > MESSAGE_LIMIT:
        raise MigrationError(f"a message of {found} bytes, not at most {MESSAGE_LIMIT}")
    return found


def decode(data: bytes) -> Message:
    """Return the message; raises MigrationError."""
    try:
        message: Message = _DECODER.decode(data)
    except (msgspec.DecodeError, ValueError) as error:  # ValueError: a session that no node can have
        raise MigrationError(f"a damaged message: {error}") from error
    return message
