"""Sessions of shared addresses move between the nodes that serve them, and every byte is checked."""

import os
import sys
from pathlib import Path
from typing import Final

import pytest
from support.migrate.shared_migrate_field import SharedMigrateField, shared_streams
from support.network.checked_streams import CheckedStreams
from support.processes.waiting import wait_until

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.needs("ip", "nft", "openssl", root=True),
    pytest.mark.slow("whole appliances behind a router"),
]

_FULL: Final = os.environ.get("E2E_FULL") == "1"
_COUNT: Final = 500 if _FULL else 40  # sessions of each family


def _go_on(streams: tuple[CheckedStreams, ...]) -> None:
    for each in streams:
        each.go_on()
        sys.stderr.write(f"{each.pauses()}\n")
        assert each.report().ended == {}


@pytest.mark.promise("docs/taking-a-node-away.md", "sessions of shared IPs move to the nodes that stay")
@pytest.mark.parametrize("count", [pytest.param(2, marks=pytest.mark.full("the same with fewer")), 3])
def test_a_node_of_shared_addresses_may_go(tmp_path: Path, count: int):
    """It leaves, and loses its network at once; when it is back, the others give it its share again."""
    with SharedMigrateField(count, tmp_path) as field:
        field.wait_for(*field.machines)
        with shared_streams(field, _COUNT) as streams:
            had = field.sessions("one")
            assert had
            field.leave("one")
            assert field.migrated("one")["given"] == had
            field.machines["one"].isolate()
            _go_on(streams)
            field.machines["one"].rejoin()
            field.nodes["one"].appliance.command("reload")
            field.wait_until_ready()
            field.wait_for(*field.machines)
            _go_on(streams)
            for name in list(field.machines)[1:]:
                wait_until(lambda: field.knows(name, "one"), what=f"{name} knows one by its name")  # noqa: B023  # called at once
                refused = field.nodes[name].appliance.command("rebalance", "nobody", check=False)
                assert f"{field.machines['one'].address} (one)" in refused.stderr
                said = field.nodes[name].appliance.command("rebalance", "one")
                sys.stderr.write(said.stdout)
            _go_on(streams)
            share = 2 * _COUNT / count
            assert abs(field.sessions("one") - share) <= 2 * count
            assert [field.migrated(name)["lost"] for name in field.machines] == [0] * count


@pytest.mark.promise("docs/taking-a-node-away.md", "a stop gives sessions of shared IPs away")
def test_a_stop_gives_them_away(tmp_path: Path):
    """TERM ends the node long before the end of its drain, and no session."""
    with SharedMigrateField(2, tmp_path) as field:
        field.wait_for(*field.machines)
        with shared_streams(field, _COUNT) as streams:
            appliance = field.nodes["one"].appliance
            appliance.terminate()
            wait_until(lambda: not field.announces("one"), what="it announces nothing")
            field.route("two")
            assert appliance.wait(patience=25.0) == 0  # `drain` is 30 s
            field.machines["one"].isolate()
            _go_on(streams)
            assert field.migrated("two")["taken"]
