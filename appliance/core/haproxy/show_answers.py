"""Answers of HAProxy's stats socket that are made from the rows: of `show stat` and `show servers state`."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from appliance.core.haproxy.statistics import Row
from appliance.model.snapshot.snapshot import Snapshot
from appliance.wire.haproxy.commands import ShowStat

_KINDS: Final = {0: 1, 1: 2, 2: 4}
_DOWN, _UP, _STOPPING = 0, 2, 3
_NO_ADMIN, _MAINT, _DRAIN = 0, 1, 8
_CHECKED: Final = 0x02 | 0x04  # CHK_ST_CONFIGURED, CHK_ST_ENABLED
_FAILED, _PASSED = 2, 3


def chosen(rows: Iterable[Row], wanted: ShowStat) -> list[Row]:
    """Return the rows that a `show stat` requests; those of a proxy by its name or its number."""
    return [
        row
        for row in rows
        if wanted.proxy in (None, str(row["iid"]), str(row["pxname"]))
        and _KINDS[int(row["type"])] & wanted.kinds
        and wanted.server in (None, row["sid"])
    ]


def server_row(rows: Iterable[Row], pool: str, server: str) -> Row | None:
    """Return the row of a server, None if there is no such server."""
    return next((row for row in _of_pool(rows, pool) if row["type"] == 2 and row["svname"] == server), None)


def configured_weight(snapshot: Snapshot, pool: str, server: str) -> int:
    """Return the configured weight of a server, 0 if it is unknown."""
    members = (each for known in snapshot.pools if known.name == pool for each in known.servers)
    return next((each.weight for each in members if each.name == server), 0)


def has_pool(rows: Iterable[Row], pool: str) -> bool:
    """Return whether there is such a pool."""
    return any(_of_pool(rows, pool))


def server_states(rows: Iterable[Row], snapshot: Snapshot, pool: str | None) -> Iterator[Sequence[int | str]]:
    """Yield the lines of `show servers state`, for one pool or for all.

    The states are numbers (management.txt, `show servers state`): operational 0 down, 2 up, 3 stopping;
    administrative 1 maintenance, 8 drain. Agents, DNS and TLS to servers do not exist here, and are 0 or `-`.
    """
    settings = {(each.name, server.name): server for each in snapshot.pools for server in each.servers}
    for row in rows:
        if row["type"] != 2 or pool not in (None, row["pxname"]):
            continue
        server = settings[str(row["pxname"]), str(row["svname"])]
        check_port = server.check.port if server.check and server.check.port else 0
        status = str(row["status"])
        yield (
            row["iid"],
            row["pxname"],
            row["sid"],
            row["svname"],
            server.host,
            _operational(status),
            {"MAINT": _MAINT, "DRAIN": _DRAIN}.get(status, _NO_ADMIN),
            row["weight"],
            row["uweight"],
            row["lastchg"],
            _check_status(row),
            _check_result(row),
            row.get("check_health", 0),
            _CHECKED if server.check else 0,
            0,
            0,
            0,
            "-",
            server.port,
            "-",
            0,
            check_port,
            "-",
            "-",
            0,
        )


def _of_pool(rows: Iterable[Row], pool: str) -> Iterator[Row]:
    return (row for row in rows if row["type"] in (1, 2) and row["pxname"] == pool)


def _operational(status: str) -> int:
    if status == "DRAIN":
        return _STOPPING
    return _UP if status.startswith(("UP", "no check")) else _DOWN


_STATUSES: Final = ("UNK", "INI", "START", "CHECKED", "HANA", "SOCKERR", "L4OK", "L4TOUT", "L4CON", "L6OK",
                    "L6TOUT", "L6RSP", "L7TOUT", "L7RSP", "L57DATA", "L7OK", "L7OKC", "L7STS")  # fmt: skip


def _check_status(row: Row) -> int:
    """Return the number of a check's result: its place in HAProxy's list (enum healthcheck_status)."""
    status = str(row.get("check_status", "INI"))
    return _STATUSES.index(status)


def _check_result(row: Row) -> int:
    """Return 0 if no check has ended, 2 for failed, 3 for passed (enum chk_result)."""
    status = str(row.get("check_status", "INI"))
    if status == "INI":
        return 0
    return _PASSED if status.endswith("OK") else _FAILED
