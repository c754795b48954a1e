"""What was found in the cluster, as a terminal shows it."""

import pytest
from rich.console import Console
from support.values.statuses import discovery

from appliance.console.discover.discovery_tables import discovery_tables
from appliance.wire.lines.discovery_status import FoundStatus, ResourceStatus, SourceStatus

pytestmark = pytest.mark.pure

NOW = 1000.0


def shown(*, hold: str | None = None, error: str | None = None, held: bool = False) -> str:
    """Return the text of a status with one source of two servers."""
    resource = ResourceStatus(
        what="nodes", server="10.0.0.1:6443", seen_at=997.0, error=error, failed_at=999.0 if error else None
    )
    source = SourceStatus(
        name="masters",
        pools=("masters", "machine-config"),
        servers=(
            FoundStatus(name="master-0", host="10.0.0.1", held=False),
            FoundStatus(name="master-1", host="10.0.0.2", held=held),
        ),
        seen_at=997.0,
        changed_at=None,
        hold=hold,
        proxy=False,
        resources=(resource,),
    )
    status = discovery(source, problems=("something is wrong",) if hold or error else ())
    console = Console(width=160)
    with console.capture() as capture:
        console.print(discovery_tables(status, NOW))
    return capture.get()


def test_sources_servers_and_what_is_asked():
    """With their age, and whom was asked last."""
    text = shown()
    assert "!" not in text
    for word in ("masters machine-config", "3s ago", "never", "master-1", "10.0.0.2", "10.0.0.1:6443"):
        assert word in text


def test_what_is_wrong():
    """Problems come first; the last error stands beside its resource, what is held beside its server."""
    text = shown(hold="the list is empty", error="forbidden: nodes is forbidden", held=True)
    assert text.startswith("! something is wrong")
    for word in ("the list is empty", "forbidden: nodes is forbidden", "1s ago", "held: the API"):
        assert word in text
    assert "nodes: silent" in shown(error="silent: no answer in time")
