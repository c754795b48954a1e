"""What the machine allows."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from appliance.net.process import limits

pytestmark = pytest.mark.sockets

RAISE = """
import resource
from appliance.net.process.limits import open_files, raise_open_files
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (100, hard))
assert raise_open_files() == open_files() == hard == raise_open_files()
"""


@pytest.mark.programs
def test_open_files() -> None:
    """The limit of open files is raised as far as it may go."""
    subprocess.run([sys.executable, "-c", RAISE], check=True)


@pytest.mark.parametrize(
    ("quota", "expected"), [("max 100000", 64), ("150000 100000", 2), ("10000 100000", 1), ("", 64)]
)
def test_processors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quota: str, expected: int) -> None:
    """A container's quota takes processors away, and never the last one."""
    (tmp_path / "cpu.max").write_text(quota)
    monkeypatch.setattr(limits, "_CGROUP_CPU", tmp_path / "cpu.max")
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)))
    assert limits.processors() == expected
