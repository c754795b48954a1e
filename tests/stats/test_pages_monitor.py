"""What is answered for HAProxy's `monitor-uri` beside the statistics: whether new connections are served."""

from types import MappingProxyType

import pytest

from appliance.core.status.status import PoolStatus, ProgramState, ProgramStatus, Status
from appliance.stats.pages import serves

pytestmark = pytest.mark.pure


def program(name: str, *, workers: int | None, expected: bool = True) -> ProgramStatus:
    """Return a program with so many workers that accept."""
    return ProgramStatus(
        name=name,
        state=ProgramState.RUNNING,
        expected=expected,
        ok=True,
        pid=1,
        uptime=1.0,
        generation=1,
        workers=workers,
        configuration=1,
        reason=None,
    )


def pool(name: str, *, up: int) -> PoolStatus:
    """Return a pool with so many servers up."""
    return PoolStatus(
        name=name,
        balance="roundrobin",
        in_use=True,
        ok=True,
        up=up,
        current=0,
        total=0,
        queued=0,
        downs=0,
        down_seconds=0.0,
        down_since=None,
        servers=(),
    )


def status(*programs: ProgramStatus, pools: tuple[PoolStatus, ...] = ()) -> Status:
    """Return what was looked for."""
    return Status(
        ok=True,
        problems=(),
        at=0.0,
        version=None,
        configuration=1,
        source=None,
        cluster=None,
        degraded=None,
        supervisor=None,
        programs=programs,
        frontends=(),
        pools=pools,
        generations=(),
        ended=MappingProxyType({}),
    )


@pytest.mark.parametrize(
    ("workers", "expected"), [((2, 1), True), ((2, 0), False), ((0, 0), False), ((None, 2), False)]
)
def test_workers_of_each_group_accept(workers: tuple[int | None, int], *, expected: bool):
    """One group without workers is enough to say no; other programs have none, and do not count."""
    found = status(
        program("proxy-api", workers=workers[0]),
        program("proxy-ingress", workers=workers[1]),
        program("health", workers=None),
    )

    assert serves(found, None) is expected


def test_a_group_that_the_configuration_does_not_have():
    """Nobody waits for it."""
    assert serves(status(program("proxy-api", workers=None, expected=False)), None)


@pytest.mark.parametrize(("up", "expected"), [(1, True), (0, False)])
def test_the_pool_that_is_needed(up: int, *, expected: bool):
    """One server up is enough; a pool that is not there has none."""
    found = status(pools=(pool("masters", up=up), pool("others", up=1)))

    assert serves(found, "masters") is expected
    assert not serves(found, "unknown")
