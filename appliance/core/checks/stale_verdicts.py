"""Whether the verdicts on servers are out of date, which `appliance status` reports as a problem.

While `health` does not run or hangs, workers use the last verdicts: to take every server for down would end
working traffic, and to take every server for up would send clients to those that were found down.
"""

from collections.abc import Iterator, Mapping

from appliance.model.check_results import CheckResult
from appliance.model.server_states import AdminState
from appliance.model.snapshot.pools import Check
from appliance.model.snapshot.snapshot import Snapshot
from appliance.wire.boards.health_board import ServerHealthRecord


def bound(check: Check, *, watchdog: float) -> float:
    """Return the greatest age in seconds of a server's last check while `health` is well.

    That is the longest pause between two checks, the longest check, and `watchdog` seconds, after which a
    `health` that hangs is killed and replaced.
    """
    pause = max(check.interval, check.fast_interval, check.down_interval)
    return pause + check.timeout + watchdog


def outdated(
    snapshot: Snapshot, known: Mapping[tuple[str, str], ServerHealthRecord], *, now: float
) -> Iterator[str]:
    """Yield one sentence about all servers of the board whose last check is too old at `now`."""
    ages = {
        f"{pool.name}/{server.name}": now - last.checked_at
        for pool in snapshot.pools
        for server in pool.servers
        if server.check is not None
        and (last := known.get((pool.name, server.name))) is not None
        and last.result is not CheckResult.UNCHECKED
        and last.admin is not AdminState.MAINT
        and now - last.checked_at > bound(server.check, watchdog=snapshot.watchdog)
    }
    if ages:
        name, age = max(ages.items(), key=lambda each: each[1])
        others = f", and {len(ages) - 1} more are as old" if len(ages) > 1 else ""
        yield f"checks are outdated, and their last verdicts hold: {name} was checked {age:.0f} s ago{others}"
