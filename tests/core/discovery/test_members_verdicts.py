"""What the checks say of discovered servers, over all pools of their source."""

import pytest
from support.values import boards
from support.values.snapshots import pool, server, snapshot

from appliance.core.discovery.members import verdicts
from appliance.model.server_states import HealthVerdict
from appliance.model.snapshot.discovery import MASTERS, Source, SourceKind
from appliance.model.snapshot.found_servers import FoundServer
from appliance.model.snapshot.pools import Discovery

pytestmark = pytest.mark.pure

SOURCE = Source(kind=SourceKind.NODES, what=MASTERS)
DISCOVERY = Discovery(source=SOURCE, port=6443, template=server(), send_proxy=None, check_follows=True)
POOLS = [pool("api", discover=DISCOVERY), pool("machine-config", discover=DISCOVERY), pool("other")]
HOST = "10.0.0.1"


def said(**by_pool: HealthVerdict | None) -> tuple[bool, bool]:
    """Return whether server `a` counts as up, and as down."""
    records = {
        (name.replace("_", "-"), "a"): boards.health(
            "a", pool=name.replace("_", "-"), verdict=verdict, host=HOST
        )
        for name, verdict in by_pool.items()
    }
    found = verdicts(
        SOURCE, [FoundServer(name="a", host=HOST)], snapshot=snapshot(pools=POOLS), records=records
    )
    return "a" in found.up, "a" in found.down


def test_down_is_down_everywhere():
    """A master whose machine config server is down has an API that serves."""
    assert said(api=HealthVerdict.DOWN, machine_config=HealthVerdict.DOWN) == (False, True)
    assert said(api=HealthVerdict.UP, machine_config=HealthVerdict.DOWN) == (True, False)
    assert said(api=HealthVerdict.DOWN, other=HealthVerdict.UP) == (False, True)


def test_what_cannot_be_told_counts_as_up():
    """Without a board, or with a record of another address; the first check is neither."""
    assert said() == (True, False)
    assert said(api=HealthVerdict.UNKNOWN) == (False, False)
    elsewhere = {("api", "a"): boards.health("a", pool="api", verdict=HealthVerdict.DOWN, host="10.0.0.9")}
    found = verdicts(
        SOURCE, [FoundServer(name="a", host=HOST)], snapshot=snapshot(pools=POOLS), records=elsewhere
    )
    assert found.up == {"a"}
