"""Virtual routers that a reload adds, on their way: opened one at a time, between the turns of the loop.

So the others stay on time. A group begins when all of its members are open.
"""

from collections import deque
from collections.abc import Callable, Iterable
from enum import Enum

from appliance.vrrp.instance.vrrp_instance import VrrpInstance

Look = Callable[[VrrpInstance], None]
"""Gives a new instance, or a changed one, the state of its interface and of what it tracks."""

Begin = Callable[[list[VrrpInstance], float], None]
"""Has instances that are open take part, as one group."""


class OpeningPhase(Enum):
    """IDLE: nothing is on its way. OPENING: some are. STOPPED: all leave, and nothing begins any more."""

    IDLE = "idle"
    OPENING = "opening"
    STOPPED = "stopped"


class OpeningOutcome(Enum):
    """What has come of those that were on their way: all take part, or the stop was first."""

    DONE = "done"
    GIVEN_UP = "given-up"


class Opening:
    """Those that do not take part yet; in the loop, `deadline` is when to open the next one."""

    def __init__(self, *, look: Look, begin: Begin) -> None:
        self.phase = OpeningPhase.IDLE
        self.deadline: float | None = None
        self._look = look
        self._begin = begin
        self._closed = deque[VrrpInstance]()
        self._waiting: list[list[VrrpInstance]] = []
        self._bugs: dict[VrrpInstance, Exception] = {}
        self._then: Callable[[OpeningOutcome], None] = _nothing

    @property
    def closed(self) -> frozenset[VrrpInstance]:
        """Return those that are not open yet."""
        return frozenset(self._closed)

    def add(self, instance: VrrpInstance) -> None:
        """Take one that is new; it waits for `start`."""
        self._closed.append(instance)

    def begin_as_group(self, instances: list[VrrpInstance]) -> None:
        """Have these, all of them closed, begin as one group when they are open."""
        self._waiting.append(instances)

    def open_now(self, instances: Iterable[VrrpInstance]) -> None:
        """Open those of them that are closed: they join others, who go on at once."""
        for each in instances:
            if each in self._closed:
                self._closed.remove(each)
                self._open(each)

    def start(self, now: float, *, then: Callable[[OpeningOutcome], None]) -> None:
        """Open what was added; `then` is called when all take part, or will not."""
        self.phase, self._then = OpeningPhase.OPENING, then
        self._go_on(now)

    def tick(self, now: float) -> None:
        """Open the next one."""
        if self.phase is OpeningPhase.OPENING:
            self._open(self._closed.popleft())
            self._begin_ready(now)
            self._go_on(now)

    def finish(self, now: float, *, between: Callable[[], None]) -> None:
        """Open all that is on its way, and do `between` after each; what began and broke off is forgotten."""
        while self.phase is OpeningPhase.OPENING:
            self.tick(now)
            between()
        self._waiting.clear()

    def stop(self) -> None:
        """Close what was opened, and begin nothing any more."""
        for instances in self._waiting:
            for each in instances:
                each.close()
        self._closed.clear()
        self._waiting.clear()
        self._end(OpeningPhase.STOPPED, OpeningOutcome.GIVEN_UP)

    def bugs(self, instances: Iterable[VrrpInstance]) -> tuple[Exception, ...]:
        """Return, once, what went wrong when these were opened: their group is to take it as its own."""
        return tuple(self._bugs.pop(each) for each in instances if each in self._bugs)

    def _open(self, instance: VrrpInstance) -> None:
        try:
            self._look(instance)
        except Exception as error:  # noqa: BLE001  # the others go on; its group logs it
            self._bugs[instance] = error

    def _begin_ready(self, now: float) -> None:
        closed = self.closed
        ready = [each for each in self._waiting if closed.isdisjoint(each)]
        self._waiting = [each for each in self._waiting if each not in ready]
        for instances in ready:
            # Of what has happened since then to an interface, its router has not been told.
            for earlier in instances[:-1]:
                self._open(earlier)
            self._begin(instances, now)

    def _go_on(self, now: float) -> None:
        """Plan the next one, or tell that there is none."""
        if self._closed:
            self.deadline = now
        else:
            self._end(OpeningPhase.IDLE, OpeningOutcome.DONE)

    def _end(self, phase: OpeningPhase, outcome: OpeningOutcome) -> None:
        self.phase, self.deadline = phase, None
        then, self._then = self._then, _nothing
        then(outcome)


def _nothing(_: OpeningOutcome) -> None:
    """Tell nobody."""
