"""Listening sockets that close, or that others get: nobody who connects meanwhile may be refused.

A bind that moves from one group to another in one reload has both programs accept on it for a while. The old
one stops when the new one says that its workers accept (`taken`), or after half a minute. So it does with a
bind whose connections the kernel forwards from now on: `forward` says when it does.
"""

import time
from typing import Final

import gevent

from appliance.core.rollout.states import WorkerId, WorkerState
from appliance.net.control.control_server import Call, WithDescriptors
from appliance.net.listening.bind_addresses import Address, overlap
from appliance.proxy.group_state import GroupState
from appliance.proxy.worker_processes import WorkerProcesses
from appliance.wire.lines.control import Answer, Question, good

LET_GO_TIMEOUT: Final = 3.0
"""Seconds for workers to close what a next reload may want to bind."""

# A client that has sent its SYN completes the handshake in the kernel, without the worker. Closing the socket
# resets whoever stands in its accept queue, so old workers accept for this long on what closes.
_LINGER: Final = 1.0
_MOVE_TIMEOUT: Final = 30.0  # the same in seconds, where another group's program is about to accept there


class MovedBinds:
    """The end of listening sockets of one group."""

    def __init__(self, state: GroupState, workers: WorkerProcesses) -> None:
        self._state = state
        self._workers = workers
        self._taken = 0  # number of the snapshot of which another group said that it accepts

    def drain_order(self, worker: WorkerId, within: float) -> Question:
        """Return the order to drain; on what closes the worker accepts for a moment, or until others do."""
        state = self._state
        served = {address for _, address in state.frontends.get(worker.generation, ())}
        closing = set[Address]() if state.stopping else served - state.addresses_in_use()
        linger = _MOVE_TIMEOUT if closing & set(self._moving()) else _LINGER
        values = {
            "deadline": time.time() + within,
            "linger": [(each.host, each.port) for each in closing],
            "linger_s": linger,
        }
        return Question(command="drain", values=values)

    def close_unused(self) -> None:
        """Close the sockets that no generation serves on, and that no other group is about to take."""
        state = self._state
        for address in state.listeners.keep_only(state.addresses_in_use() | set(self._moving())):
            state.log.info("listener-closed", bind=str(address))

    def lend(self, call: Call) -> WithDescriptors:
        """Answer `lend`: give copies of what is listened on at a port.

        Without the lock: two groups that get binds of each other in one reload would wait for each other.
        """
        found = self._state.listeners.at(call.question.integer("port"))
        descriptors = tuple(each for queues in found.values() for each in queues)
        return WithDescriptors(answer=good(lent=len(found)), descriptors=descriptors)

    def taken(self, call: Call) -> Answer:
        """Answer `taken`: another group's program accepts on what it got."""
        self._let_go(call.question.integer("snapshot"))
        return good()

    def wait_closed(self) -> None:
        """Return when the workers have closed what is listened on no more, so that it can be bound again.

        What another group gets is kept, for a while at most, and not waited for.
        """
        if not self.keep_moving():
            self._workers.settle(timeout=LET_GO_TIMEOUT)

    def keep_moving(self) -> bool:
        """Keep what another group gets until it is taken, half a minute at most; say whether there is any.

        Later nobody accepts there any more: a socket that stayed open would have clients wait in its queue.
        """
        state = self._state
        moving = self._moving()
        if moving:
            number = state.current.number if state.current else 0
            binds = [str(each) for each in moving]
            state.log.info("listeners-kept", binds=binds, seconds=_MOVE_TIMEOUT)
            gevent.spawn_later(_MOVE_TIMEOUT, self._let_go, number)
        return bool(moving)

    def _moving(self) -> list[Address]:
        """Return what we hold and another group has now, whose program does not accept on it yet."""
        state = self._state
        if state.current is None or state.stopping or self._taken >= state.current.number:
            return []
        others = (group for group in state.current.proxied if group.name != state.group)
        frontends = [each for group in others for each in group.frontends]
        frontends += [each for _, each in state.current.forwarded]
        binds = [bind for each in frontends for bind in each.binds]
        in_use = state.addresses_in_use()
        closing = [each for each in state.listeners if each not in in_use]
        return [each for each in closing if any(overlap(bind, each) for bind in binds)]

    def _let_go(self, snapshot: int) -> None:
        """Close what another group accepts on as of a snapshot."""
        state = self._state
        self._taken = max(self._taken, snapshot)
        if state.current is None or self._taken < state.current.number:
            return  # we come to that snapshot later
        for generation in state.rollout.generations.values():
            for worker in generation.workers.values():
                if worker.state is WorkerState.DRAINING:
                    self._workers.order(worker.id, Question(command="let-go"))
        self.close_unused()
        state.changed.set()
