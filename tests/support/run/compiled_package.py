"""Whether the package under test is the one that is compiled, which a second run of its tests takes.

`make test-compiled` names it by PYTHONPATH, so that programs which a test starts find it too.
"""

import pytest

from appliance.worker.relay import raw_io


def check() -> None:
    """Raise UsageError where the tests would run the checkout's sources: they would prove nothing."""
    if not raw_io.COMPILED:
        raise pytest.UsageError(f"{raw_io.__file__} is not compiled: make test-compiled")
