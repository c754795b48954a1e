"""How long a client misses a virtual IP: a pair of keepalived and a pair of ours, same timers, in turn.

Two nodes and a client on one bridge, in network namespaces. Each measure starts a fresh pair, waits until the
node of higher priority answers the client, lets the event happen, and ends when the other one answers.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from statistics import median
from typing import Final

from support.network.capture import Capture
from support.network.namespaces import Node, Segment
from support.processes.waiting import wait_until
from support.vrrp.keepalived import Instance, Keepalived
from support.vrrp.vip_client import Outage, VipClient, serve
from support.vrrp.vrrp_node import VrrpNode, router
from support.vrrp.vrrp_packets import Advert

_ADDRESS: Final = "192.0.2.100"
_HIGH: Final = 150
_LOW: Final = 100
_NOISE: Final = 0.02
"""What two medians may differ by and still be the same: pulling the cable takes some milliseconds."""

RIVAL: Final = "keepalived"
OURS: Final = "appliance"


class Event(StrEnum):
    """What happens to the active node."""

    CRASH = "crash"
    STOP = "stop"
    MOVE = "vip move"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timers:
    """A version and its advertisement interval, and how often an event is repeated in one round."""

    version: int
    advert: float
    repeat: int

    def __str__(self) -> str:
        return f"v{self.version}, {self.advert * 1000:g} ms"


ALL_TIMERS: Final = (
    Timers(version=2, advert=1.0, repeat=1),
    Timers(version=3, advert=1.0, repeat=1),
    Timers(version=3, advert=0.1, repeat=3),
    Timers(version=3, advert=0.01, repeat=3),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two running routers: how the active one dies, stops, and moves its address (None: it cannot)."""

    kill: Callable[[], None]
    stop: Callable[[], None]
    move: Callable[[], object] | None


Key = tuple[Timers, Event]
Results = dict[Key, dict[str, list[Outage]]]


def measure(*, rounds: int, say: Callable[[str], None]) -> Results:
    """Return what the client saw, by timers and event, and by contender; `say` hears of progress."""
    results: Results = defaultdict(lambda: defaultdict(list))
    for number in range(rounds):
        order = _CONTENDERS if number % 2 == 0 else tuple(reversed(_CONTENDERS))
        for timers in ALL_TIMERS:
            say(f"round {number + 1} of {rounds}: {timers}")
            for event in Event:
                for name in order * timers.repeat:
                    if name == OURS or event != Event.MOVE:
                        results[timers, event][name].append(_once(name, timers, event))
    return results


def markdown(results: Results) -> str:
    """Return the table: gap in milliseconds and probes lost, min-median-max of each."""
    head = ["timers", "event", "keepalived: gap ms", "lost", "appliance: gap ms", "lost", "ratio", "target"]
    lines = [_line(head), "|---" * len(head) + "|"]
    return "\n".join([*lines, *(_row(key, by_name) for key, by_name in results.items())]) + "\n"


def _row(key: Key, by_name: dict[str, list[Outage]]) -> str:
    timers, event = key
    theirs, ours = by_name.get(RIVAL, []), by_name[OURS]
    ratio = f"{_gap(ours) / _gap(theirs):.2f}" if theirs and _gap(theirs) else ""
    cells = [str(timers), str(event), *_cells(theirs), *_cells(ours), ratio, _target(event, theirs, ours)]
    return _line(cells)


def _cells(outages: list[Outage]) -> tuple[str, str]:
    if not outages:
        return "", ""
    return (
        _spread([each.gap * 1000 for each in outages], digits=1),
        _spread([each.lost for each in outages], digits=0),
    )


def _spread(values: list[float], *, digits: int) -> str:
    return "-".join(f"{value:,.{digits}f}" for value in (min(values), median(values), max(values)))


def _target(event: Event, theirs: list[Outage], ours: list[Outage]) -> str:
    if event == Event.CRASH:
        return _verdict("no longer than keepalived", reached=_gap(ours) <= _gap(theirs) * (1 + _NOISE))
    if event == Event.STOP:
        return _verdict("< 5 ms", reached=_gap(ours) < 0.005)
    return _verdict("< 5 ms, none lost", reached=max(each.lost for each in ours) == 0)


def _verdict(target: str, *, reached: bool) -> str:
    return f"{target}: {'reached' if reached else 'missed'}"


def _gap(outages: list[Outage]) -> float:
    return median(each.gap for each in outages)


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _once(name: str, timers: Timers, event: Event) -> Outage:
    with ExitStack() as stack:
        segment = stack.enter_context(Segment())
        high, low, client = (segment.node(each) for each in ("high", "low", "client"))
        serve(high, low)
        capture = stack.enter_context(Capture(segment))
        pair = stack.enter_context(_PAIRS[name](high, low, timers))
        probes = stack.enter_context(VipClient(client, _ADDRESS, interval=min(0.002, timers.advert / 20)))
        probes.wait_for_answer_by("high")
        _settle(capture, high, low)
        begin = probes.mark()
        _let_it_happen(event, pair, high, capture)
        probes.wait_for_answer_by("low")
        # Whatever shakes after the change belongs to it as well: an old answer, a second change.
        probes.wait_for_more(int(0.5 / min(0.002, timers.advert / 20)))
        return probes.stop().since(begin)


def _settle(capture: Capture, high: Node, low: Node) -> None:
    """Wait until the high one alone advertises and has the address."""

    def calm() -> bool:
        mark = capture.mark()
        for _ in range(3):
            capture.wait_for_advert(since=capture.mark(), source=high.address)
        loud = any(isinstance(each, Advert) and each.source == low.address for each in capture.read()[mark:])
        return not loud and high.holds(_ADDRESS) and not low.holds(_ADDRESS)

    wait_until(calm, what="the pair has settled", timeout=30.0)


def _let_it_happen(event: Event, pair: Pair, high: Node, capture: Capture) -> None:
    if event == Event.MOVE:
        assert pair.move is not None
        pair.move()
        return
    # Right after an advertisement is the worst moment, and the same one for both.
    capture.wait_for_advert(since=capture.mark(), source=high.address)
    if event == Event.STOP:
        pair.stop()
        return
    # The whole machine is gone: nothing of it is heard and its address answers nobody.
    high.unplug()
    pair.kill()


@contextmanager
def _keepalived(high: Node, low: Node, timers: Timers) -> Iterator[Pair]:
    def instance(priority: int) -> Instance:
        return Instance(version=timers.version, advert=timers.advert, priority=priority)

    with Keepalived(low, instance(_LOW)) as backup, Keepalived(high, instance(_HIGH)) as active:
        active.wait_for("MASTER")
        backup.wait_for("BACKUP")
        yield Pair(kill=active.kill, stop=active.terminate, move=None)


@contextmanager
def _ours(high: Node, low: Node, timers: Timers) -> Iterator[Pair]:
    def node(where: Node, priority: int) -> VrrpNode:
        return VrrpNode(where, router(version=timers.version, advert=timers.advert, priority=priority))

    with node(low, _LOW) as backup, node(high, _HIGH) as active:
        active.wait_for("active")
        backup.wait_for("backup")
        yield Pair(kill=active.kill, stop=active.terminate, move=active.move)


_PAIRS: Final = {RIVAL: _keepalived, OURS: _ours}
_CONTENDERS: Final = (RIVAL, OURS)
