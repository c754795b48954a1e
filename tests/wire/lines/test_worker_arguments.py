"""A worker's orders travel on its command line."""

from dataclasses import replace

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


def test_thousands_of_addresses_are_many_words():
    """None of them is longer than the kernel takes, whatever their names are."""
    many = tuple(
        InheritedListener(frontend=f"\u00e9{number}", host="2001:db8::1", port=number, fd=number)
        for number in range(5000)
    )
    orders = replace(ORDERS, listeners=many)
    words = encode(orders)
    assert decode(words) == orders
    assert max(len(each.encode()) for each in words) < 128 << 10
    assert sum(len(each.encode()) + 9 for each in words) < 1 << 20


@pytest.mark.parametrize("argument", ["", "{}", "[1]", '{"program": 1}', "\udc96", "[" * 100_000])
def test_other_arguments_are_refused(argument: str):
    """Anything else is one error."""
    with pytest.raises(WorkerArgumentsError):
        decode([argument])
