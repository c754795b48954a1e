"""Notifies the targets of `notify` of events: a greenlet and a queue for each, so none waits for another.

This runs in `reload`, which no traffic and no virtual IP waits for. It reads the boards itself, so events are
sent even if they cannot be kept.
"""

import socket
import time

import gevent
from gevent.event import Event
from structlog.typing import FilteringBoundLogger

from appliance.core.events.notify_queue import NotifyQueue
from appliance.model.operator_events import OperatorEvent
from appliance.model.snapshot.snapshot import NotifyTarget
from appliance.reload.notifying.delivery import CommandFailed, DeliveryFailed, deliver
from appliance.reload.notifying.secret_files import SecretFiles


class Notifier:
    """All targets of the accepted configuration."""

    def __init__(self, log: FilteringBoundLogger) -> None:
        self._log = log
        self._secrets = SecretFiles()
        self._notified: dict[NotifyTarget, _NotifiedTarget] = {}

    def obey(self, targets: tuple[NotifyTarget, ...]) -> None:
        """Notify these from now on; unchanged targets keep their queues."""
        for gone in self._notified.keys() - set(targets):
            self._notified.pop(gone).close()
        for target in targets:
            if target not in self._notified:
                self._notified[target] = _NotifiedTarget(target, self._secrets, self._log)

    def notify(self, event: OperatorEvent) -> None:
        """Queue an event for every target that wants it; never waits."""
        for each in self._notified.values():
            each.notify(event)

    def close(self) -> None:
        """Stop notifying targets."""
        self.obey(())


class _NotifiedTarget:
    def __init__(self, target: NotifyTarget, secrets: SecretFiles, log: FilteringBoundLogger) -> None:
        self._target = target
        self._secrets = secrets
        self._log = log
        self._queue = NotifyQueue()
        self._more = Event()
        self._greenlet = gevent.spawn(self._serve)
        self._greenlet.link_exception(
            lambda ended: log.error("notify-crashed", target=target.name, exc_info=ended.exception)
        )

    def notify(self, event: OperatorEvent) -> None:
        if self._target.wants(event.kind):
            self._queue.add(event)
            self._more.set()

    def close(self) -> None:
        self._greenlet.kill(block=False)

    def _serve(self) -> None:
        while True:
            deadline = self._queue.deadline
            self._more.wait(None if deadline is None else max(0.0, deadline - time.monotonic()))
            self._more.clear()
            deadline = self._queue.deadline
            if deadline is not None and deadline > (now := time.monotonic()):
                gevent.sleep(deadline - now)
            self._send()

    def _send(self) -> None:
        batch = self._queue.due(time.monotonic())
        if batch is None:
            return
        try:
            deliver(self._target, batch, socket.gethostname(), self._secrets)
        except CommandFailed as error:
            self._queue.delivered(batch, time.monotonic())
            self._log.warning("notify-failed", target=self._target.name, reason=str(error))
        except DeliveryFailed as error:
            if self._queue.failed(batch, time.monotonic()):
                self._log.warning("notify-failed", target=self._target.name, reason=str(error), again=True)
        except Exception as error:  # noqa: BLE001  # a bug; what comes later is delivered nevertheless
            if self._queue.failed(batch, time.monotonic()):
                self._log.error("notify-crashed", target=self._target.name, exc_info=error)
        else:
            self._queue.delivered(batch, time.monotonic())
