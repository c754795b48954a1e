"""The metrics of discovery and of redirects."""

from dataclasses import replace

import pytest
from support.values.observations import NOW, observations

from appliance.core.metrics.sources import source_metrics
from appliance.core.status.assessment import assess
from appliance.core.status.status import RedirectedFrontendStatus, Status
from appliance.wire.lines.discovery_status import FoundStatus, ResourceStatus, SourceStatus

pytestmark = pytest.mark.pure

SOURCE = SourceStatus(
    name="masters",
    pools=("masters",),
    servers=(
        FoundStatus(name="m0", host="10.0.0.1", held=False),
        FoundStatus(name="m1", host="10.0.0.2", held=True),
    ),
    seen_at=NOW - 30.0,
    changed_at=None,
    hold=None,
    proxy=False,
    resources=(ResourceStatus(what="nodes", server="a", seen_at=NOW, error=None, failed_at=None),),
)


def values(**changes: object) -> dict[str, dict[str, float]]:
    """Return values by name and labels, of a status with `changes`."""
    status: Status = replace(assess(observations(), NOW), **changes)
    return {each.name.removeprefix("appliance_"): dict(each.samples) for each in source_metrics(status)}


def test_the_age_of_a_source():
    """How long ago the API has shown it, and what it has."""
    found, name = values(discovery=(SOURCE,)), '{source="masters"}'
    assert (found["discovery_age_seconds"], found["discovery_ok"]) == ({name: 30.0}, {name: 1})
    assert (found["discovery_servers"], found["discovery_held_servers"]) == ({name: 2}, {name: 1})


@pytest.mark.parametrize(
    "changes",
    [
        {"seen_at": None},
        {"resources": (replace(SOURCE.resources[0], error="connection refused"),)},
    ],
)
def test_a_source_that_is_not_well(changes: dict[str, object]):
    """It was never seen, or one of its lists is not watched now; an age that is unknown is absent."""
    found = values(discovery=(replace(SOURCE, **changes),))
    assert found["discovery_ok"] == {'{source="masters"}': 0}
    assert len(found["discovery_age_seconds"]) == ("seen_at" not in changes)


def test_redirects():
    """Each has one of its states; where nobody knows, none."""
    on = RedirectedFrontendStatus(name="api/kube-api", sources=(), state="on", since=None, reason=None)
    found = values(redirects=(on, replace(on, name="api/mcs", state=None)))["redirect_state"]
    assert [name for name, value in found.items() if value] == ['{frontend="api/kube-api",state="on"}']
    assert len(found) == 8
