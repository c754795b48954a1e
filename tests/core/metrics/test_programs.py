"""The metrics of programs and workers."""

import pytest
from support.values.observations import NAMES, NOW, observations

from appliance.core.metrics.programs import WorkerDescriptors, program_metrics
from appliance.core.status.assessment import assess
from appliance.core.status.observations import Observations

pytestmark = pytest.mark.pure


def values(found: Observations, *descriptors: WorkerDescriptors) -> dict[str, dict[str, float]]:
    """Return values by name, without the beginning that they share, and labels."""
    made = program_metrics(assess(found, NOW), found, descriptors)
    return {each.name.removeprefix("appliance_"): dict(each.samples) for each in made}


def test_programs():
    """Which run, since when, with which configuration."""
    found = values(observations())
    assert found["program_up"] == {f'{{program="{name}"}}': 1 for name in NAMES}
    assert found["program_start_time_seconds"]['{program="health"}'] == 150
    assert found["program_configuration"]['{program="proxy-api"}'] == 7


def test_restarts():
    """The first start is none; of a program that nobody has counted there are none."""
    found = values(observations(starts={"health": 3, "reload": 1}))["program_restarts_total"]
    assert found == {'{program="reload"}': 0, '{program="health"}': 2, '{program="proxy-api"}': 0}


def test_descriptors():
    """Of each worker, with its limit."""
    worker = WorkerDescriptors(program="proxy-api", generation=3, index=1, open=40, limit=1024)
    found = values(observations(), worker)
    named = '{program="proxy-api",worker="3.1"}'
    assert (found["worker_open_descriptors"], found["worker_max_descriptors"]) == ({named: 40}, {named: 1024})
