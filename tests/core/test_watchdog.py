"""The watchdog's verdicts, in literal times."""

import pytest

from appliance.core.linger.nodes import SILENT
from appliance.core.watchdog import (
    LOOK,
    SOONER,
    START,
    STARVED,
    HeartbeatReading,
    HungProcess,
    Watchdog,
)

pytestmark = pytest.mark.pure

_PERIOD = 10.0


class Machine:
    """Processes that beat or do not, and a watchdog that looks once a second."""

    def __init__(self, *names: str) -> None:
        self.now = 100.0
        self.readings = {
            name: HeartbeatReading(name=name, pid=10 + at, beat=1) for at, name in enumerate(names)
        }
        self.waits = {reading.pid: 0.0 for reading in self.readings.values()}
        self.watchdog = Watchdog(lambda pid: self.waits.get(pid, 0.0))

    def pass_time(self, seconds: int, *alive: str) -> list[HungProcess]:
        """Let time pass in which only these beat; return who was found to hang."""
        found: list[HungProcess] = []
        for _ in range(seconds):
            self.now += 1.0
            for name in alive:
                self.beat(name)
            found += self.look()
        return found

    def beat(self, name: str) -> None:
        """Move one heartbeat."""
        last = self.readings[name]
        self.readings[name] = HeartbeatReading(name=name, pid=last.pid, beat=last.beat + 1)

    def look(self) -> tuple[HungProcess, ...]:
        """Have the watchdog look now."""
        return self.watchdog.look(self.readings.values(), now=self.now, period=_PERIOD)


def test_who_beats_lives():
    """Nobody is told of for as long as the heartbeats move."""
    assert Machine("health", "reload").pass_time(1000, "health", "reload") == []


def test_who_is_silent_for_the_period_hangs():
    """It is told once, and again after another period if it is still there."""
    machine = Machine("health", "reload")
    machine.pass_time(5, "health", "reload")
    assert machine.pass_time(10, "health") == []
    (hung,) = machine.pass_time(1, "health")
    assert hung == HungProcess(name="reload", pid=11, silent=11.0)
    assert machine.pass_time(10, "health") == []
    assert [each.name for each in machine.pass_time(1, "health")] == ["reload"]


def test_linger_has_to_be_back_before_others_give_it_up():
    """It may hang for less than the period, from its first beat on: so it is back in time."""
    machine = Machine("linger", "reload")
    machine.pass_time(5, "linger", "reload")
    assert machine.pass_time(3, "reload") == []
    assert [each.name for each in machine.pass_time(1, "reload")] == ["linger"]
    assert SOONER["linger"] + LOOK < SILENT - 1.0


def test_a_successor_has_a_period_of_its_own():
    """Another process of the same name starts at zero."""
    machine = Machine("health", "reload")
    machine.pass_time(9, "health")
    machine.readings["reload"] = HeartbeatReading(name="reload", pid=99, beat=1)
    assert machine.pass_time(10, "health") == []
    assert [each.pid for each in machine.pass_time(2, "health")] == [99]


def test_a_program_that_starts_has_longer():
    """Until its first beat it has a minute: imports may take their time on a busy machine."""
    machine = Machine("health")
    machine.readings["vrrp"] = HeartbeatReading(name="vrrp", pid=7, beat=0, begun=False)
    assert machine.pass_time(int(START), "health") == []
    assert [each.name for each in machine.pass_time(2, "health")] == ["vrrp"]


@pytest.mark.parametrize("gap", [4.0, 3600.0])
def test_time_in_which_the_watchdog_did_not_run_does_not_count(gap: float):
    """After a suspended machine, or one that stood still, all begin a fresh period."""
    machine = Machine("health", "reload", "vrrp")
    machine.pass_time(9, "health")
    machine.now += gap
    assert machine.look() == ()
    assert machine.pass_time(10, "health") == []
    assert {each.name for each in machine.pass_time(1, "health")} == {"reload", "vrrp"}


def test_all_late_together_are_spared_once():
    """Where nobody beats it is the machine, for one period; whoever hangs after that does hang."""
    machine = Machine("health", "reload", "vrrp")
    machine.pass_time(3, "health", "reload", "vrrp")
    machine.pass_time(4, "vrrp")
    assert machine.pass_time(17) == []
    assert {each.name for each in machine.pass_time(1)} == {"health", "reload", "vrrp"}


def test_who_comes_back_ends_the_indulgence():
    """After a stall that ended the next one is a stall again, and who stays silent in between hangs."""
    machine = Machine("health", "reload")
    machine.pass_time(12)  # spared at the twelfth look
    assert [each.name for each in machine.pass_time(11, "health")] == ["reload"]
    machine.pass_time(3, "health", "reload")
    assert machine.pass_time(15) == []


def test_a_single_process_is_not_the_machine():
    """Where there is only one to watch there is nothing to compare it with."""
    assert [each.name for each in Machine("health").pass_time(12)] == ["health"]


def test_who_is_gone_is_forgotten():
    """A worker that has ended is nobody's business, and comes back as a new one."""
    machine = Machine("health", "worker-proxy-api-1-0")
    machine.pass_time(9, "health")
    gone = machine.readings.pop("worker-proxy-api-1-0")
    machine.pass_time(1, "health")
    machine.readings[gone.name] = gone
    assert machine.pass_time(10, "health") == []


def _starve(machine: Machine, seconds: int, *, share: float) -> list[str]:
    """Let `health` wait for a processor for a share of the time; return who was found to hang."""
    found = []
    for _ in range(seconds):
        machine.waits[10] += share
        found += [each.name for each in machine.pass_time(1, "reload")]
    return found


def test_who_waits_for_a_processor_does_not_hang():
    """Only the rest of the time counts: here a period of it has passed after four periods."""
    machine = Machine("health", "reload")
    machine.pass_time(3, "health", "reload")
    assert _starve(machine, 37, share=0.75) == []
    assert _starve(machine, 1, share=0.75) == ["health"]


def test_a_wait_is_counted_when_it_ends():
    """A long one that began before the last look takes back what has been counted meanwhile."""
    machine = Machine("health", "reload")
    machine.pass_time(3, "health", "reload")
    assert machine.pass_time(9, "reload") == []
    machine.waits[10] += 9.0
    assert machine.pass_time(10, "reload") == []
    assert [(each.name, each.silent) for each in machine.pass_time(1, "reload")] == [("health", 20.0)]


def test_nobody_waits_for_ever():
    """Who gets no processor for so long is started again."""
    machine = Machine("health", "reload")
    machine.pass_time(3, "health", "reload")
    assert _starve(machine, int(_PERIOD + STARVED), share=1.0) == []
    assert _starve(machine, 1, share=1.0) == ["health"]
