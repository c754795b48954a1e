"""The views of `appliance top`, and the table of each."""

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from functools import lru_cache
from typing import Final

from appliance.core.top.sample import Sample
from appliance.core.top.states import CHECKS, PROGRAMS, VIPS, checks, programs, virtual_ips
from appliance.core.top.tables import Column, Row, Table
from appliance.core.top.traffic import ERRORS, FRONTENDS, POOLS, SERVERS, errors, frontends, pools, servers


class View(StrEnum):
    """The views in the order of their numbers."""

    FRONTENDS = "frontends"
    POOLS = "pools"
    SERVERS = "servers"
    CHECKS = "checks"
    ERRORS = "errors"
    VIPS = "vips"
    PROGRAMS = "programs"


_Rows = Callable[[Sample, str | None], Iterator[Row]]

_TABLES: Final[Mapping[View, tuple[tuple[Column, ...], _Rows]]] = {
    View.FRONTENDS: (FRONTENDS, frontends),
    View.POOLS: (POOLS, pools),
    View.SERVERS: (SERVERS, servers),
    View.CHECKS: (CHECKS, checks),
    View.ERRORS: (ERRORS, lambda sample, _: errors(sample)),
    View.VIPS: (VIPS, lambda sample, _: virtual_ips(sample)),
    View.PROGRAMS: (PROGRAMS, lambda sample, _: programs(sample)),
}


# Each key draws the screen again, mostly for the same look.
@lru_cache(maxsize=4)
def table(view: View, sample: Sample, *, pool: str | None = None) -> Table:
    """Return the table of a view; `pool` limits the rows of pools to that one."""
    columns, rows = _TABLES[view]
    return Table(columns=columns, rows=tuple(rows(sample, pool)))


def column_names(view: View) -> tuple[str, ...]:
    """Return the names of a view's columns, as JSON and `--sort` have them."""
    return tuple(each.name for each in _TABLES[view][0])
