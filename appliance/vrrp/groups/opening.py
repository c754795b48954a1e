"""Opens the instances that a reload adds, one per turn of the loop; a group begins when all are open."""

from collections import deque
from collections.abc import Callable, Iterable
from enum import Enum

from appliance.vrrp.instance.vrrp_instance import VrrpInstance

OpenInstance = Callable[[VrrpInstance, float], None]
"""Gives an instance the present state of its interface, which opens its sockets, and of its tracks."""

BeginGroup = Callable[[list[VrrpInstance], float], None]
"""Has open instances take part, as one group."""


class OpeningPhase(Enum):
    """IDLE: no instance is waiting. OPENING: some are. STOPPED: the program stops, and opens no more."""

    IDLE = "idle"
    OPENING = "opening"
    STOPPED = "stopped"


class OpeningOutcome(Enum):
    """How an opening ended: all instances take part, or the program was stopped first."""

    DONE = "done"
    GIVEN_UP = "given-up"


class Opening:
    """The instances that do not take part yet; the loop wakes it at `deadline` to open the next one."""

    def __init__(self, *, open_instance: OpenInstance, begin: BeginGroup) -> None:
        self.phase = OpeningPhase.IDLE
        self.deadline: float | None = None
        self._open_instance = open_instance
        self._begin = begin
        self._closed = deque[VrrpInstance]()
        self._waiting_groups: list[list[VrrpInstance]] = []
        self._bugs: dict[VrrpInstance, Exception] = {}
        self._then: Callable[[OpeningOutcome], None] = _nothing

    @property
    def closed(self) -> frozenset[VrrpInstance]:
        """Return the instances that are not open yet."""
        return frozenset(self._closed)

    def add(self, instance: VrrpInstance) -> None:
        """Add a new instance, to be opened after `start`."""
        self._closed.append(instance)

    def begin_as_group(self, instances: list[VrrpInstance]) -> None:
        """Begin with these closed instances as one group when all are open."""
        self._waiting_groups.append(instances)

    def open_now(self, instances: Iterable[VrrpInstance], now: float) -> None:
        """Open the closed ones among them: they join instances that run already."""
        for each in instances:
            if each in self._closed:
                self._closed.remove(each)
                self._open(each, now)

    def start(self, now: float, *, then: Callable[[OpeningOutcome], None]) -> None:
        """Begin to open the added instances; `then` gets the outcome, at once if there is nothing to do."""
        self.phase, self._then = OpeningPhase.OPENING, then
        self._plan_next(now)

    def tick(self, now: float) -> None:
        """Open one instance, and begin with the groups that are complete."""
        if self.phase is OpeningPhase.OPENING:
            self._open(self._closed.popleft(), now)
            self._begin_complete(now)
            self._plan_next(now)

    def finish(self, now: float, *, between: Callable[[], None]) -> None:
        """Open all instances now, and call `between` after each; forget what an error left over."""
        while self.phase is OpeningPhase.OPENING:
            self.tick(now)
            between()
        self._waiting_groups.clear()

    def stop(self) -> None:
        """Close the opened instances, and begin no more groups."""
        for instances in self._waiting_groups:
            for each in instances:
                each.close()
        self._closed.clear()
        self._waiting_groups.clear()
        self._end(OpeningPhase.STOPPED, OpeningOutcome.GIVEN_UP)

    def take_bugs(self, instances: Iterable[VrrpInstance]) -> tuple[Exception, ...]:
        """Return, once, the errors from opening these instances: their group must handle them."""
        return tuple(self._bugs.pop(each) for each in instances if each in self._bugs)

    def _open(self, instance: VrrpInstance, now: float) -> None:
        try:
            self._open_instance(instance, now)
        except Exception as error:  # noqa: BLE001  # the others go on; its group logs it
            self._bugs[instance] = error

    def _begin_complete(self, now: float) -> None:
        closed = self.closed
        complete = [each for each in self._waiting_groups if closed.isdisjoint(each)]
        self._waiting_groups = [each for each in self._waiting_groups if each not in complete]
        for instances in complete:
            # Opened again: an instance without a group gets no events of its interface.
            for earlier in instances[:-1]:
                self._open(earlier, now)
            self._begin(instances, now)

    def _plan_next(self, now: float) -> None:
        if self._closed:
            self.deadline = now
        else:
            self._end(OpeningPhase.IDLE, OpeningOutcome.DONE)

    def _end(self, phase: OpeningPhase, outcome: OpeningOutcome) -> None:
        self.phase, self.deadline = phase, None
        then, self._then = self._then, _nothing
        then(outcome)


def _nothing(_: OpeningOutcome) -> None:
    """Do nothing: no caller waits for the outcome."""
