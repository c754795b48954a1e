"""Listening sockets that close, or move to another group, without refusing clients that connect meanwhile.

During a reload that moves a bind from one group to another, both programs accept on it for a while. The old
one stops soon after the new one has reported that its workers accept (`taken`), or after half a minute. A
bind whose connections the kernel forwards from now on is handled the same way: `forward` sends the report.
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
"""Seconds for workers to close addresses that the next reload may want to bind."""

# A client that has sent its SYN completes the handshake in the kernel, without the worker. Closing the socket
# resets all clients that are about to, or wait in its accept queue, so old workers accept for this long on
# sockets that close.
_LINGER: Final = 1.0
_MOVE_TIMEOUT: Final = 30.0  # the same in seconds, if another group's program is about to accept there


class MovedBinds:
    """The end of one group's listening sockets."""

    def __init__(self, state: GroupState, workers: WorkerProcesses) -> None:
        self._state = state
        self._workers = workers
        self._taken = 0  # number of the snapshot with which another group reported that it accepts

    def drain_order(self, worker: WorkerId, within: float) -> Question:
        """Return the order to drain; on closing sockets the worker accepts briefly, or until others do."""
        state = self._state
        served = {address for _, address in state.frontends.get(worker.generation, ())}
        closing = set[Address]() if state.closing else served - state.addresses_in_use()
        linger = _MOVE_TIMEOUT if closing & set(self._moving()) else _LINGER
        values = {
            "deadline": time.time() + within,
            "linger": [(each.host, each.port) for each in closing],
            "linger_s": linger,
        }
        return Question(command="drain", values=values)

    def close_unused(self) -> None:
        """Close the sockets that no generation serves and that no other group is about to take."""
        state = self._state
        for address in state.listeners.keep_only(state.addresses_in_use() | set(self._moving())):
            state.log.info("listener-closed", bind=str(address))

    def lend(self, call: Call) -> WithDescriptors:
        """Answer `lend`: give copies of the sockets that listen at a port.

        Without the lock: two groups that get binds from each other in one reload would wait for each other.
        """
        found = self._state.listeners.at(call.question.integer("port"))
        descriptors = tuple(each for queues in found.values() for each in queues)
        return WithDescriptors(answer=good(lent=len(found)), descriptors=descriptors)

    def taken(self, call: Call) -> Answer:
        """Answer `taken`: another group's program accepts on the sockets that it got."""
        self._let_go(call.question.integer("snapshot"))
        return good()

    def wait_closed(self) -> None:
        """Return when the workers have closed all unused sockets, so that the addresses can be bound again.

        Sockets that another group gets are kept, for a while at most, and not waited for.
        """
        if not self.keep_moving():
            self._workers.settle(timeout=LET_GO_TIMEOUT)

    def keep_moving(self) -> bool:
        """Keep sockets that another group gets until taken, half a minute at most; return whether any exist.

        After that no program accepts there: a socket that stayed open would make clients wait in its queue.
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
        """Return the sockets that now belong to another group whose program does not accept on them yet."""
        state = self._state
        if state.current is None or state.closing or self._taken >= state.current.number:
            return []
        others = (group for group in state.current.proxied if group.name != state.group)
        frontends = [each for group in others for each in group.frontends]
        frontends += [each for _, each in state.current.forwarded]
        binds = [bind for each in frontends for bind in each.binds]
        in_use = state.addresses_in_use()
        closing = [each for each in state.listeners if each not in in_use]
        return [each for each in closing if any(overlap(bind, each) for bind in binds)]

    def _let_go(self, snapshot: int) -> None:
        """Close the sockets on which another group accepts as of a snapshot."""
        state = self._state
        self._taken = max(self._taken, snapshot)
        if state.current is None or self._taken < state.current.number:
            return  # we have not reached that snapshot yet
        for generation in state.rollout.generations.values():
            for worker in generation.workers.values():
                if worker.state is WorkerState.DRAINING:
                    self._workers.order(worker.id, Question(command="let-go", values={"linger_s": _LINGER}))
        self.close_unused()
        state.changed.set()
