"""The messages of two `migrate`: what is sent is received, and nothing else is."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.values.migration import BATCH, OFFER, SESSION, STATE

from appliance.wire import session_migration
from appliance.wire.session_migration import (
    MESSAGE_LIMIT,
    PREFIX,
    Ask,
    Commit,
    Hello,
    Message,
    Migrating,
    MigrationError,
    Offer,
    Prepared,
    Settled,
)
from appliance.wire.tcp_state import Place

pytestmark = pytest.mark.pure

_MESSAGES: tuple[Message, ...] = (
    Hello(version=1, run=BATCH),
    OFFER,
    Prepared(refused=("", "no pool masters")),
    Commit(batch=BATCH, places=(0, 3)),
    Ask(batch=BATCH),
    Settled(taken=True),
)


@pytest.mark.parametrize("message", _MESSAGES, ids=lambda each: type(each).__name__)
def test_what_is_sent_is_received(message: Message):
    """A message is its length and itself."""
    data = session_migration.encode(message)
    assert session_migration.length(data[:PREFIX]) == len(data) - PREFIX
    assert session_migration.decode(data[PREFIX:]) == message


def test_the_bytes_of_its_queues_are_counted():
    """All three queues go with a connection, and both connections with a session."""
    assert STATE.queued == 6
    assert Migrating(session=SESSION, client=STATE, server=None).queued == 6
    assert Migrating(session=SESSION, client=STATE, server=STATE).queued == 12


def test_a_message_that_is_too_long_is_not_read():
    """Its length is enough to reject it."""
    with pytest.raises(MigrationError, match=f"a message of {MESSAGE_LIMIT + 1} bytes"):
        session_migration.length((MESSAGE_LIMIT + 1).to_bytes(PREFIX, "big"))


@given(data=st.binary(max_size=200))
def test_damaged_messages_are_rejected(data: bytes):
    """Whatever arrives is a message or a MigrationError."""
    try:
        decoded = session_migration.decode(data)
    except MigrationError:
        return
    assert isinstance(decoded, Message)


@given(at=st.integers(min_value=0), value=st.integers(min_value=0, max_value=255))
def test_changed_messages_are_rejected_or_whole(at: int, value: int):
    """A changed byte makes a MigrationError, or a message that keeps all limits."""
    data = bytearray(session_migration.encode(OFFER)[PREFIX:])
    data[at % len(data)] = value
    try:
        decoded = session_migration.decode(bytes(data))
    except MigrationError:
        return
    assert session_migration.decode(session_migration.encode(decoded)[PREFIX:]) == decoded


@pytest.mark.parametrize("host", ["192.0.2.1; flush ruleset", "lb-1", "fe80::1%eth0"])
def test_an_address_is_nothing_but_an_address(host: str):
    """It becomes a part of the kernel's rules."""
    changed = msgspec.structs.replace(STATE, peer=Place(host, 1))
    offer = Offer(
        batch=BATCH,
        program="proxy-api",
        sessions=(Migrating(session=SESSION, client=changed, server=None),),
    )
    with pytest.raises(MigrationError, match="damaged"):
        session_migration.decode(session_migration.encode(offer)[PREFIX:])


def test_a_session_that_no_node_can_have_is_rejected():
    """One that relays has a server."""
    data = msgspec.msgpack.decode(session_migration.encode(OFFER)[PREFIX:])
    data["sessions"][0]["session"]["waiting"] = None
    with pytest.raises(MigrationError, match="damaged"):
        session_migration.decode(msgspec.msgpack.encode(data))
