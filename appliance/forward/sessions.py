"""The commands `sessions` and `kill` for connections that the kernel forwards, as conntrack lists them.

The kernel shows age and bytes only with `net.netfilter.nf_conntrack_timestamp` and `nf_conntrack_acct` on,
which are off in most distributions. How long a connection has been silent follows from when it will be
forgotten, while neither side has closed.
"""

import contextlib
import time
from collections.abc import Callable, Iterator
from ipaddress import ip_address
from typing import Final

import gevent

from appliance.core.balancing.access_lists import NetworkSet
from appliance.core.forwarding.mark_numbers import MARK, MARK_MASK, NumbersExhausted, Owner, Owners
from appliance.core.forwarding.plan import server_name
from appliance.forward.ended_connections import end_each
from appliance.forward.forwarder import Forwarder
from appliance.model.snapshot.frontends import Bind
from appliance.net.netlink.conntrack import Conntrack, TrackedConnection, longest_silence
from appliance.wire.lines import listed_session
from appliance.wire.lines.control import Answer, ControlError, Question, bad, good
from appliance.wire.lines.listed_session import ListedSession

MOST: Final = 50_000
"""Most connections in one answer, so that it stays below the longest line that is accepted."""

_SLICE: Final = 200  # connections after which others get their turn


class ForwardedSessions:
    """The commands about the connections of a forwarder."""

    def __init__(self, forwarder: Forwarder) -> None:
        self._forwarder = forwarder
        self._owners = Owners()

    def learn(self) -> None:
        """Note the owner of each number; call before and after every change of the configuration."""
        number = self._forwarder.numbers.number
        for frontend in self._forwarder.frontends:
            name = frontend.config.name.partition(" ")[0]  # of a leaving one: without what it gives up
            pool = self._forwarder.pools[frontend.config.pool or ""]
            with contextlib.suppress(NumbersExhausted):  # they have no rules either, and no connections
                self._owners.learn(
                    {
                        number(server_name(frontend.name, each.pool, each.name)): Owner(
                            frontend=name, server=each.label
                        )
                        for each in pool.members
                        if each.address
                    }
                )

    def listing(self) -> Answer:
        """Return the connections, and how many more exist than an answer holds."""
        self.learn()
        silence, now = longest_silence(), time.time()
        found, more = list[ListedSession](), 0
        for each in self._connections():
            if len(found) < MOST:
                found.append(_described(each, self._owners.of_mark(each.mark), silence=silence, now=now))
            else:
                more += 1
        return listed_session.encode(found, left_out=more)

    def kill(self, question: Question) -> Answer:
        """End the connections that the request names: by id, server, source or destination.

        Source and destination are an address or a network: the clients', or the one that they connected to.
        """
        self.learn()
        matches = self._matcher(question)
        if matches is None:
            return bad("kill: needs one of id, server, source, destination")
        found = [each for each in self._connections() if matches(each)]
        offloaded = self._forwarder.tables.stop_offload()
        killed = end_each(found)
        if offloaded:
            self._forwarder.settle()
        return good(killed=killed)

    def _connections(self) -> Iterator[TrackedConnection]:
        """Yield the connections that are open or being opened; lets other work run, as they may be many."""
        with contextlib.closing(Conntrack()) as conntrack:
            found = conntrack.each(MARK, MARK_MASK, but=self._forwarder.syncing.elsewhere)
            for position, each in enumerate(found, 1):
                if each.open or each.connecting:
                    yield each
                if not position % _SLICE:
                    gevent.sleep(0)

    def _matcher(self, question: Question) -> Callable[[TrackedConnection], bool] | None:
        if (wanted := question.optional_text("id")) is not None:
            return lambda each: _id(each) == wanted
        if (server := question.optional_text("server")) is not None:
            return lambda each: (
                (owner := self._owners.of_mark(each.mark)) is not None and (owner.server == server)
            )
        if (source := question.optional_text("source")) is not None:
            clients = _networks("source", source)
            return lambda each: ip_address(each.client.source).packed in clients
        if (destination := question.optional_text("destination")) is not None:
            ours = _networks("destination", destination)
            return lambda each: ip_address(each.client.destination).packed in ours
        return None


def _described(
    each: TrackedConnection, owner: Owner | None, *, silence: int | None, now: float
) -> ListedSession:
    idle = None
    if each.established and silence is not None and each.remaining is not None:
        idle = float(max(silence - each.remaining, 0))
    return ListedSession(
        id=_id(each),
        frontend=owner.frontend if owner else "-",
        client=str(Bind(host=each.client.source, port=each.client.source_port)),
        server=owner.server if owner else None,
        age=None if each.started is None else round(max(now - each.started, 0.0), 3),
        idle=idle,
        bytes_in=each.sent,
        bytes_out=each.answered,
        phase="forwarded" if each.open else "connecting",
        remaining=None if each.remaining is None else float(each.remaining),
    )


def _id(each: TrackedConnection) -> str:
    return f"kernel-{each.id:08x}"


def _networks(key: str, given: str) -> NetworkSet:
    try:
        return NetworkSet([given])
    except ValueError as error:
        raise ControlError(f"kill: {key}: {error}") from error
