"""What a worker notes of one server."""

import pytest
from support.values.snapshots import check, server

from appliance.core.balancing.pool_member import PoolMember

pytestmark = pytest.mark.pure


def member(*, error_limit: int | None) -> PoolMember:
    """Return a server whose check has this limit, None for one that is not checked."""
    given = None if error_limit is None else check("tcp", error_limit=error_limit)
    config = server("a", check=given)
    return PoolMember(pool="pool", config=config, address=None, limit=0, seed=1, turn=0.0)


@pytest.mark.parametrize(
    ("error_limit", "doubted"),
    [(1, [True] * 4), (2, [False, True, False, True]), (0, [False] * 4), (None, [False] * 4)],
)
def test_so_many_errors_in_a_row_make_a_server_doubtful(error_limit: int | None, doubted: list[bool]):
    """Counting begins anew each time; without a limit or a check there is nothing to ask for."""
    subject = member(error_limit=error_limit)
    assert [subject.suspect() for _ in range(4)] == doubted
