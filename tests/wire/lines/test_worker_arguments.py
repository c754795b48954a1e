"""A worker's orders travel as one argument."""

import pytest

from appliance.wire.lines.worker_arguments import (
    InheritedListener,
    WorkerArguments,
    WorkerArgumentsError,
    decode,
    encode,
)

pytestmark = pytest.mark.pure

ORDERS = WorkerArguments(
    program="proxy-api",
    group="api",
    generation=3,
    index=0,
    workers=2,
    snapshot=7,
    listeners=(InheritedListener(frontend="kube-api", host="::", port=9445, fd=12),),
    ready_fd=20,
)


def test_orders_come_back():
    """What a master encodes is what its worker decodes."""
    assert decode(encode(ORDERS)) == ORDERS


@pytest.mark.parametrize("argument", ["", "{}", "[1]", '{"program": 1}', "\udc96", "[" * 100_000])
def test_other_arguments_are_refused(argument: str):
    """Anything else is one error."""
    with pytest.raises(WorkerArgumentsError):
        decode(argument)
