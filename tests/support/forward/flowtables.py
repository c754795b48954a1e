"""Connections that are in a flowtable of a balancer's kernel, where it has any."""

import pytest
from support.forward.forward_field import ForwardField, Session
from support.network.namespaces import INTERFACE
from support.processes.waiting import wait_until

from appliance.model.snapshot.frontends import Flowtable
from appliance.net.nftables.flowtables import objections
from appliance.wire.nftables.nftables_commands import Family


def software_or_skip(balanced: ForwardField) -> None:
    """Skip the test where the kernel has no flowtables, with the reason that an operator is told."""
    with balanced.balancer.inside():
        why = list(objections(Family, Flowtable.SOFTWARE, (INTERFACE,)))
    if why:
        pytest.skip(why[0])


def offloaded(balanced: ForwardField) -> int:
    """Return how many connections are in a flowtable."""
    return sum("offloaded=True" in each for each in balanced.conntrack())


def offloaded_session(balanced: ForwardField, address: str) -> Session:
    """Return an open connection that has come into a flowtable."""
    session = balanced.session(address)
    before = offloaded(balanced)

    def asked() -> bool:
        assert session.asks() == session.server
        return offloaded(balanced) > before or offloaded(balanced) == len(balanced.conntrack())

    wait_until(asked, what="the connection is in a flowtable")
    return session
