"""Whether what is known of servers is of now: a verdict that nobody renews stays in force, and is said.

Workers go by the last verdict while `health` is silent: to call every server down would end traffic that
flows, and to call it up would send clients to those that were found to be down.
"""

from collections.abc import Iterator, Mapping

from appliance.model.check_results import CheckResult
from appliance.model.server_states import AdminState
from appliance.model.snapshot.pools import Check
from appliance.model.snapshot.snapshot import Snapshot
from appliance.wire.boards.health_board import ServerHealthRecord


def bound(check: Check, *, watchdog: float) -> float:
    """Return the age in seconds up to which the result of a check is one that nobody has missed yet.

    That is the longest pause between two checks, the longest check, and the time for a `health` that hangs to
    be replaced.
    """
    pause = max(check.interval, check.fast_interval, check.down_interval)
    return pause + check.timeout + watchdog


def outdated(
    snapshot: Snapshot, known: Mapping[tuple[str, str], ServerHealthRecord], *, now: float
) -> Iterator[str]:
    """Yield one problem for all servers whose last check is too old at `now`, Unix seconds."""
    ages = {
        f"{pool.name}/{server.name}": now - last.checked_at
        for pool in snapshot.pools
        for server in pool.servers
        if server.check is not None
        and (last := known.get((pool.name, server.name))) is not None
        and _is_checked(last)
        and now - last.checked_at > bound(server.check, watchdog=snapshot.watchdog)
    }
    if ages:
        name, age = max(ages.items(), key=lambda each: each[1])
        others = f", and {len(ages) - 1} more are as old" if len(ages) > 1 else ""
        yield f"checks are outdated, and their last verdicts hold: {name} was checked {age:.0f} s ago{others}"


def _is_checked(last: ServerHealthRecord) -> bool:
    return last.result is not CheckResult.UNCHECKED and last.admin is not AdminState.MAINT
