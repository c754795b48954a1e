"""How many descriptors a process has open."""

import os
import resource
from pathlib import Path

import pytest

from appliance.stats import figures

pytestmark = pytest.mark.sockets


def test_our_own():
    """Opening some is seen, beside the limit."""
    before = figures.open_descriptors(os.getpid())
    opened = [os.dup(0) for _ in range(5)]
    try:
        after = figures.open_descriptors(os.getpid())
    finally:
        for each in opened:
            os.close(each)
    assert before is not None
    assert after == (before[0] + 5, resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def test_of_a_kernel_that_does_not_tell_the_number(tmp_path: Path):
    """They are counted then."""
    (tmp_path / "7" / "fd").mkdir(parents=True)
    for name in "012":
        (tmp_path / "7" / "fd" / name).touch()
    limits = tmp_path / "7" / "limits"
    limits.write_text("Limit    Soft Limit   Hard Limit  Units\nMax open files    1024     4096     files\n")
    found = figures.open_descriptors(7, proc=tmp_path)
    assert found is not None
    assert found[1] == 1024
    limits.write_text("Max open files    unlimited     unlimited     files\n")
    assert figures.open_descriptors(7, proc=tmp_path) is None


def test_of_nobody(tmp_path: Path):
    """A process that is gone has none."""
    assert figures.open_descriptors(7, proc=tmp_path) is None
