"""Routes and rules of ours, where the kernel has less than others; with a kernel: tests/kernel/net."""

import errno
import os

import pytest

from appliance.net.netlink.netlink import Message, Requests
from appliance.net.netlink.route_messages import all_routes, all_rules
from appliance.net.netlink.routing import Routing

pytestmark = pytest.mark.sockets


class Lacking(Requests):
    """Requests to a kernel that answers some with an error."""

    def __init__(self, errors: dict[bytes, int]) -> None:
        super().__init__()
        self._errors = errors

    def dump(self, request: bytes) -> list[Message]:
        """Ask, or raise the error."""
        error = self._errors.get(request, 0)
        if error:
            raise OSError(error, os.strerror(error))
        return super().dump(request)


@pytest.mark.parametrize("error", [errno.EAFNOSUPPORT, errno.EOPNOTSUPP])
def test_a_kernel_without_ipv6_or_rules_has_none_of_ours(error: int) -> None:
    """A machine started with ipv6.disable=1 answers so; that is no reason to end."""
    with Lacking({all_rules(10): error, all_routes(10): error}) as requests:
        assert Routing(requests).leftovers() == ()


def test_a_kernel_that_does_not_answer_is_an_error() -> None:
    """Nobody knows then what is there."""
    with Lacking({all_rules(2): errno.ENOBUFS}) as requests, pytest.raises(OSError, match="buffer"):
        Routing(requests).leftovers()
