"""Makes `tests/support` importable, and decides what a test does where the machine lacks what it needs."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from support import tools  # needs the line above


def pytest_configure(config: pytest.Config) -> None:
    """Describe the markers that this file gives a meaning."""
    config.addinivalue_line(
        "markers", "needs(*tools, root=False): programs, and rights, without which the test cannot run"
    )


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose needs are not met, or fail it where they could have been."""
    for marker in item.iter_markers("needs"):
        objection = tools.objection(marker.args, root=marker.kwargs.get("root", False))
        if objection is None:
            continue
        if tools.must_be_complete():
            pytest.fail(f"{objection}, and this is a complete CI run", pytrace=False)
        pytest.skip(objection)
    if item.get_closest_marker("kernel") and not tools.is_root():
        pytest.skip("needs root: network namespaces")
