"""Where a session goes on whose pool is gone: never with a pool that other clients are routed to."""

import socket
from random import Random

import pytest
from msgspec import structs
from support.values.moving_sessions import OPEN, QUEUED
from support.values.snapshots import frontend, pool, server

from appliance.core.balancing.frontend_state import FrontendState
from appliance.core.balancing.pool_state import PoolState
from appliance.model.snapshot.frontends import ClientRoute, SniRoute
from appliance.worker.arriving_sessions import ArrivalPlaces, NoPlaceError
from appliance.worker.relay.backend import Backend

pytestmark = pytest.mark.sockets

_NAMED = (SniRoute(names=("a",), pool="named"), ClientRoute(networks=("10.0.0.0/8",), pool="named"))
_GONE = {"frontend": "front", "pool": "gone"}


def _places(*routes: SniRoute | ClientRoute) -> ArrivalPlaces:
    """Return the places of a worker with the frontend `front`, its pool `rest` and one `named`."""
    made = {
        name: pool(name, servers=[server(each)]) for name, each in (("rest", "other"), ("named", "master-0"))
    }
    states = {
        name: Backend(PoolState(each, workers=1, index=0, random=Random(1)))  # noqa: S311  # protects nothing
        for name, each in made.items()
    }
    sni = tuple(each for each in routes if isinstance(each, SniRoute))
    clients = tuple(each for each in routes if isinstance(each, ClientRoute))
    front = FrontendState(frontend("front", pool="rest", sni=sni, clients=clients), workers=1, index=0)
    return ArrivalPlaces(frontends={"front": front}, backends=states, listeners=[])


def test_an_open_session_goes_on_with_the_pool_of_its_server():
    """It may be one that a server name or the client's network leads to."""
    with socket.socket() as client:
        for route in _NAMED:
            _, found = _places(route).of(structs.replace(OPEN, **_GONE), client.fileno())
            assert found.pool.config.name == "named"
        with pytest.raises(NoPlaceError):
            _places().of(structs.replace(OPEN, **_GONE), client.fileno())


def test_one_that_waits_takes_a_pool_only_where_there_is_no_choice():
    """Which route it has come by is not known any more: it stays with its worker."""
    with socket.socket() as client:
        _, found = _places().of(structs.replace(QUEUED, **_GONE), client.fileno())
        assert found.pool.config.name == "rest"
        for route in _NAMED:
            with pytest.raises(NoPlaceError):
                _places(route).of(structs.replace(QUEUED, **_GONE), client.fileno())
