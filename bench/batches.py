"""How long sessions pause while they move to another node: two nodes, all programs, in network namespaces.

The pause of a batch is what `migrate` logs: from a worker's offer until the other node has answered that the
sessions go on there. That of a stream is what its client sees: a packet that was dropped meanwhile is sent
again after the 200 ms of TCP's least time-out.
"""

import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Final

from support.linger.linger_field import PORT
from support.migrate.migrate_field import MigratingNode, fill, leave, migrating_nodes, take_back
from support.network.checked_streams import CheckedStreams

from appliance.worker.sessions_to_other_nodes import MOST

COUNT: Final = 500
"""Sessions of each version of IP."""

_PERIOD: Final = 1.0
_BATCH: Final = f"longest pause of a batch of {MOST} in a move, ms"
_STREAM: Final = "longest pause of a stream in a move, ms"
_MEDIAN: Final = "median of the streams' longest pauses in a move, ms"
_SECONDS: Final = "seconds for 1,000 sessions"
_EVENT: Final = "sessions-moved-to-node"

Results = dict[str, list[float]]


def measure(*, rounds: int, count: int, say: Callable[[str], None]) -> Results:
    """Return the figures of every move there and back; `count` are sessions of each version of IP."""
    results: Results = defaultdict(list)
    with (
        tempfile.TemporaryDirectory(prefix="lb-batches-") as directory,
        migrating_nodes(2, Path(directory)) as (client, (one, two)),
        CheckedStreams(client, port=PORT, period=_PERIOD) as streams,
    ):
        fill(streams, count)
        for number in range(rounds):
            say(f"round {number + 1} of {rounds}")
            for source, target, move in ((one, two, leave), (two, one, take_back)):
                streams.pauses()
                for what, value in _moved(source, target, move):
                    results[what].append(value)
                streams.go_on()
                pauses = streams.pauses()
                results[_STREAM].append(pauses.longest * 1000)
                results[_MEDIAN].append(pauses.median * 1000)
        assert streams.report().ended == {}
    return results


def _moved(
    source: MigratingNode, target: MigratingNode, move: Callable[[MigratingNode, MigratingNode], None]
) -> Iterator[tuple[str, float]]:
    before = len(source.appliance.events(_EVENT))
    move(source, target)
    for each in source.appliance.events(_EVENT)[before:]:
        yield _BATCH, float(str(each["longest_pause"])) * 1000
        yield _SECONDS, float(str(each["seconds"])) * 1000 / int(str(each["sessions"]))


def markdown(results: Results) -> str:
    """Return the table: minimum-median-maximum of each."""
    lines = ["| measure | |", "|---|---|"]
    for what, values in results.items():
        spread = "-".join(f"{value:,.3g}" for value in (min(values), median(values), max(values)))
        lines.append(f"| {what} | {spread} |")
    return "\n".join(lines) + "\n"
