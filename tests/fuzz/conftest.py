"""How long each target is fed, and with which inputs."""

import time

import pytest


@pytest.fixture
def fuzz_seconds(pytestconfig: pytest.Config) -> float:
    """Seconds for one target: a few tenths with all the other tests, what `make fuzz` says else."""
    return float(pytestconfig.getoption("--fuzz-seconds"))


@pytest.fixture
def fuzz_seed(pytestconfig: pytest.Config) -> int:
    """Where the inputs begin: the same in every run of the tests, others in each one of `make fuzz`."""
    given = pytestconfig.getoption("--fuzz-seed")
    return time.time_ns() if given == "random" else int(given)
