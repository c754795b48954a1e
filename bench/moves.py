"""What a planned move of virtual IPs does to open connections: keepalived with HAProxy, and ours, in turn.

Two nodes and a client in network namespaces on one bridge; a virtual IP of each family, moved there and back.
Streams are checked byte by byte all the time (`support.network.checked_streams`). One that was ended connects
again at once, as the best of clients would: its pause is until the new connection has brought a piece back.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Final

from support.linger.linger_field import PORT
from support.linger.moving_nodes import NAMES, VIPS, moving_nodes
from support.linger.rival_nodes import RivalNodes
from support.network.checked_streams import CheckedStreams
from support.network.namespaces import Node, Segment

RIVAL: Final = "keepalived and HAProxy"
OURS: Final = "appliance"
CONNECTIONS: Final = 1000
_PERIOD: Final = 0.5
_MOVES: Final = 4
_REST: Final = 2.0

_ENDED: Final = "connections ended by a move, of {:,}"
_LONGEST: Final = "longest pause of a stream in a move, ms"
_MEDIAN: Final = "median of the streams' longest pauses in a move, ms"
_WITHOUT: Final = f"longest pause in {_REST:g} s without a move, ms"

Results = dict[str, dict[str, list[float]]]
"""By measure and contender, a figure for each move."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two nodes at work: how their addresses move to the second one, and back."""

    client: Node
    away: Callable[[], object]
    back: Callable[[], object]


def measure(*, rounds: int, connections: int, say: Callable[[str], None]) -> Results:
    """Return the figures of every move; `say` hears of progress."""
    results: Results = defaultdict(lambda: defaultdict(list))
    contenders = ((RIVAL, _rivals), (OURS, _ours))
    for number in range(rounds):
        for name, start in contenders[:: 1 if number % 2 == 0 else -1]:
            say(f"round {number + 1} of {rounds}: {name}")
            with start() as pair:
                for what, value in _moved(pair, connections):
                    results[what][name].append(value)
    return results


def markdown(results: Results) -> str:
    """Return the table: minimum-median-maximum of each."""
    lines = [f"| measure | {RIVAL} | {OURS} |", "|---|---|---|"]
    lines += [f"| {what} | {_spread(by[RIVAL])} | {_spread(by[OURS])} |" for what, by in results.items()]
    return "\n".join(lines) + "\n"


def _moved(pair: Pair, connections: int) -> Iterator[tuple[str, float]]:
    """Move there and back, and yield what the streams saw."""
    with CheckedStreams(pair.client, port=PORT, period=_PERIOD, returns=True) as streams:
        for vip in VIPS:
            streams.connect(vip, connections // len(VIPS))
        streams.pauses()
        time.sleep(_REST)
        yield _WITHOUT, streams.pauses().longest * 1000
        for number in range(_MOVES):
            before = sum(streams.report().ended.values())
            (pair.away, pair.back)[number % 2]()
            streams.go_on()
            pauses = streams.pauses()
            yield _ENDED.format(connections), sum(streams.report().ended.values()) - before
            yield _LONGEST, pauses.longest * 1000
            yield _MEDIAN, pauses.median * 1000


@contextmanager
def _rivals() -> Iterator[Pair]:
    """Move by a stop of keepalived and its start: it has no other planned move."""
    with Segment() as segment:
        nodes = RivalNodes(segment, NAMES[:2])
        client = segment.node("client")
        with nodes:
            yield Pair(client=client, away=lambda: nodes.stop("one"), back=lambda: nodes.start("one"))


@contextmanager
def _ours() -> Iterator[Pair]:
    with moving_nodes(2) as (client, nodes):
        yield Pair(client=client, away=nodes.move, back=nodes.reclaim)


def _spread(values: list[float]) -> str:
    return "-".join(f"{value:,.0f}" for value in (min(values), median(values), max(values)))
