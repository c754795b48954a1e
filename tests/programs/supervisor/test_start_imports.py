"""What programs do not import at their start, because clients wait for them."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.programs

_PROGRAMS = (
    "supervisor",
    "reload",
    "health",
    "proxy",
    "redirect",
    "forward",
    "linger",
    "worker.__main__",
    "vrrp",
    "tracker",
    "stats",
)


def _imported(module: str) -> set[str]:
    script = f"import sys, {module}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("program", _PROGRAMS)
def test_no_program_draws_tables_or_validates(program: str):
    """No program imports the library for tables, nor the validator of configurations."""
    assert not _imported(f"appliance.programs.{program}") & {"rich", "pydantic"}


def test_run_needs_no_network():
    """`appliance run` imports neither netlink nor the event loop before it knows that it needs them."""
    assert not _imported("appliance.console.run") & {"rich", "pyroute2", "gevent"}
