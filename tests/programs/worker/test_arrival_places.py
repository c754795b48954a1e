"""Where a session goes on whose pool is gone: never with the pool of another server name."""

import socket
from random import Random

import pytest
from msgspec import structs
from support.values.moving_sessions import OPEN, QUEUED
from support.values.snapshots import frontend, pool, server

from appliance.core.balancing.frontend_state import FrontendState
from appliance.core.balancing.pool_state import PoolState
from appliance.model.snapshot.frontends import SniRoute
from appliance.worker.arriving_sessions import ArrivalPlaces, NoPlaceError
from appliance.worker.relay.backend import Backend

pytestmark = pytest.mark.sockets

_GONE = {"frontend": "front", "pool": "gone"}


def _places(*routes: SniRoute) -> ArrivalPlaces:
    """Return the places of a worker with the frontend `front`, its pool `rest` and one `named`."""
    made = {
        name: pool(name, servers=[server(each)]) for name, each in (("rest", "other"), ("named", "master-0"))
    }
    states = {
        name: Backend(PoolState(each, workers=1, index=0, random=Random(1)))  # noqa: S311  # protects nothing
        for name, each in made.items()
    }
    front = FrontendState(frontend("front", pool="rest", sni=routes), workers=1, index=0)
    return ArrivalPlaces(frontends={"front": front}, backends=states, listeners=[])


def test_an_open_session_goes_on_with_the_pool_of_its_server():
    """It may be one that a server name leads to."""
    with socket.socket() as client:
        places = _places(SniRoute(names=("a",), pool="named"))
        _, found = places.of(structs.replace(OPEN, **_GONE), client.fileno())
        assert found.pool.config.name == "named"
        with pytest.raises(NoPlaceError):
            _places().of(structs.replace(OPEN, **_GONE), client.fileno())


def test_one_that_waits_takes_a_pool_only_where_there_is_no_choice():
    """Which server name it has asked for is not known any more: it stays with its worker."""
    with socket.socket() as client:
        _, found = _places().of(structs.replace(QUEUED, **_GONE), client.fileno())
        assert found.pool.config.name == "rest"
        with pytest.raises(NoPlaceError):
            _places(SniRoute(names=("a",), pool="named")).of(
                structs.replace(QUEUED, **_GONE), client.fileno()
            )
