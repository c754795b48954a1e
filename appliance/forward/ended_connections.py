"""Ends connections that the kernel forwards: conntrack forgets them, and both ends are reset."""

import contextlib
import errno
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import gevent

from appliance.core.forwarding.mark_numbers import MARK
from appliance.net.netlink.conntrack import Conntrack, TrackedConnection
from appliance.net.packets.challenge_acks import ChallengeAcks

_WHOLE: Final = 0xFFFFFFFF
_TRIES: Final = 40  # attempts to delete what leaves a flowtable
_PAUSE: Final = 0.05  # seconds between two of them
_AT_ONCE: Final = 256  # connections after which others get their turn


def end_connections(owners: Mapping[int, str], *, but: frozenset[str] = frozenset()) -> Mapping[str, int]:
    """End the connections of servers with these numbers; return how many were open, by owner. Raises OSError.

    Those to the addresses `but` are other nodes'. The kernel walks all of conntrack for each query, so it is
    read once for all servers.
    """
    found: dict[int, list[TrackedConnection]] = {}
    with contextlib.closing(Conntrack()) as conntrack:
        for each in conntrack.connections(*_all_of(owners), but=but):
            if each.mark ^ MARK in owners:
                found.setdefault(each.mark, []).append(each)
        for mark in sorted(found):
            if but:
                _forget_each(conntrack, found[mark])
            else:
                forget(conntrack, mark, _WHOLE, offloaded=any(each.offloaded for each in found[mark]))
            gevent.sleep(0)
    ended = dict.fromkeys(owners.values(), 0)
    with ChallengeAcks() as acks:
        for mark in sorted(found):
            ended[owners[mark ^ MARK]] += _reset(acks, [each for each in found[mark] if each.open])
            gevent.sleep(0)
    return ended


def end_each(connections: Sequence[TrackedConnection]) -> int:
    """End these connections; return how many still existed. Raises OSError."""
    there: list[TrackedConnection] = []
    with contextlib.closing(Conntrack()) as conntrack:
        for count, each in enumerate(connections, 1):
            if _forgotten(conntrack, each):
                there.append(each)
            if not count % _AT_ONCE:
                gevent.sleep(0)
    with ChallengeAcks() as acks:
        _reset(acks, [each for each in there if each.open])
    return len(there)


def _forget_each(conntrack: Conntrack, connections: Iterable[TrackedConnection]) -> None:
    for count, each in enumerate(connections, 1):
        _forgotten(conntrack, each)
        if not count % _AT_ONCE:
            gevent.sleep(0)


def _forgotten(conntrack: Conntrack, connection: TrackedConnection) -> bool:
    """Make conntrack forget one connection, which may be leaving a flowtable. Raises OSError."""
    for _ in range(_TRIES if connection.offloaded else 0):
        try:
            return conntrack.forget(connection)
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
        gevent.sleep(_PAUSE)
    return conntrack.forget(connection)


def forget(conntrack: Conntrack, mark: int, mask: int, *, offloaded: bool) -> None:
    """Make conntrack forget connections; some may be leaving a flowtable. Raises OSError.

    Some kernels do not delete a connection that is in a flowtable (ctnetlink_flush_iterate of Linux 4.16 to
    6.5, for example), and a removed flowtable is emptied a moment later.
    """
    conntrack.delete(mark, mask)
    for _ in range(_TRIES if offloaded else 0):
        if not any(each.offloaded for each in conntrack.connections(mark, mask)):
            break
        gevent.sleep(_PAUSE)
        conntrack.delete(mark, mask)


def _all_of(numbers: Iterable[int]) -> tuple[int, int]:
    """Return a mark, and the mask of the bits that all these numbers share."""
    first, *others = numbers
    mask = _WHOLE
    for each in others:
        mask &= ~(each ^ first)
    return MARK | first, mask


def _reset(acks: ChallengeAcks, connections: Collection[TrackedConnection]) -> int:
    """Make both ends of each connection send, which resets them; return their number. Raises OSError."""
    for count, each in enumerate(connections, 1):
        client, server = each.client, each.server
        acks.open_for(client.source)
        with contextlib.suppress(OSError):  # one end cannot be reached: the other end matters as much
            acks.provoke((client.destination, client.destination_port), (client.source, client.source_port))
        with contextlib.suppress(OSError):
            acks.provoke((server.destination, server.destination_port), (server.source, server.source_port))
        if not count % _AT_ONCE:
            gevent.sleep(0)
    return len(connections)
