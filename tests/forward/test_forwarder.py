"""The forwarder with a kernel of the test's own: what it writes, and what it does where that refuses."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import cast

import gevent
import pytest
from structlog.testing import CapturingLogger
from structlog.typing import FilteringBoundLogger
from support.processes.waiting import wait_until
from support.values import boards, snapshots
from support.values.snapshots import frontend, group, pool, server

from appliance.core.forwarding.mark_numbers import Numbers, comment
from appliance.core.forwarding.ruleset import TABLE
from appliance.core.status.connection_room import ConnectionRoom
from appliance.forward import forwarder as module
from appliance.forward.forwarder import Forwarder
from appliance.forward.kernel_tables import KernelTables
from appliance.forward.standing import Standing
from appliance.model.paths import Paths
from appliance.model.server_states import HealthVerdict
from appliance.model.snapshot.frontends import Bind, Forward
from appliance.model.snapshot.pools import OnDown, OnUp, Pool
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.boards.board_writer import BoardWriter
from appliance.net.logging import log as logs
from appliance.net.netlink import connection_room
from appliance.net.netlink.table_contents import TableContents
from appliance.net.nftables.nftables import Nftables, NftablesError
from appliance.net.nftables.owned_table import OwnedTable
from appliance.wire.boards import health_board
from appliance.wire.nftables.nftables_answer import NftablesObject
from appliance.wire.nftables.nftables_commands import Family, list_counters

pytestmark = pytest.mark.sockets

BOTH = pool(servers=[server("a", host="192.0.2.1"), server("b", host="2001:db8::1")])
PUBLISHED = health_board.encode(boards.health_board(boards.health("a"), boards.health("b")))


class Kernel:
    """nftables that notes what is written, lists `counters`, and refuses scripts with `refused` in them."""

    def __init__(self) -> None:
        self.scripts: list[str] = []
        self.refused = "nothing"
        self.counters: tuple[NftablesObject, ...] = ()
        self.changed = b""
        self.meanwhile = b""  # what somebody changes while the next script is done

    def generation(self) -> int:
        """Return how many scripts were taken, and changes of others."""
        return len(self.scripts) + len(self.changed)

    def digest(self, family: Family, table: str) -> bytes:
        """Return what others have made of the tables."""
        assert table == TABLE
        return family.encode() + self.changed

    def run(self, script: str, **_: int) -> tuple[NftablesObject, ...]:
        """List the counters of IPv4, or what is not there; take a script, or refuse it."""
        if self.counters and script == list_counters(Family.IPV4, TABLE):
            return self.counters
        if script.startswith(("list ", "delete ")):
            raise NftablesError("No such file or directory")
        if self.refused in script:
            raise NftablesError("File exists")
        self.scripts.append(script)
        self.changed, self.meanwhile = self.changed + self.meanwhile, b""
        return ()


MAIN = f"f{Numbers().number('api/main')}"


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    """Directories of the test."""
    return Paths(runtime=tmp_path, state=tmp_path)


@pytest.fixture
def kernel() -> Kernel:
    """One that refuses nothing."""
    return Kernel()


@pytest.fixture
def guard() -> Kernel:
    """The same for the guards, whose scripts are told apart."""
    return Kernel()


@pytest.fixture
def board(paths: Paths) -> BoardWriter:
    """The health board, of which nothing is published yet."""
    return BoardWriter(paths.health_board)


@pytest.fixture
def published(board: BoardWriter) -> None:
    """Have both servers be up on the board."""
    board.publish(PUBLISHED, changed=True)


@pytest.fixture
def forwarder(
    paths: Paths, kernel: Kernel, guard: Kernel, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Forwarder]:
    """One that has applied nothing yet, on a machine that forwards packets."""
    monkeypatch.setattr(module, "objections", lambda _: ())
    standing = Standing(connect=lambda: cast("TableContents", kernel))
    guards = OwnedTable(connect=lambda: cast("Nftables", guard))
    tables = KernelTables(connect=lambda: cast("Nftables", kernel), standing=standing, guards=guards)
    made = Forwarder(paths, logs.obey("forward", one().log), tables, on_fault=print)
    with closing(made):
        yield made


@pytest.fixture
def taken_over(kernel: Kernel) -> None:
    """Have the kernel hold the rules of an earlier process."""
    fields = {"name": "f1_asked", "comment": comment("api/main")}
    kernel.counters = (NftablesObject(kind="counter", fields=fields),)


def one(*, on_down: OnDown = OnDown.KEEP, backed: Pool | None = None) -> Snapshot:
    """Return a snapshot with one frontend that the kernel forwards in both families."""
    binds = [Bind(host="::", port=80)]
    given = frontend("main", forward=Forward.KERNEL, binds=binds)
    return snapshots.snapshot(
        groups=[group("api", frontends=[given])], pools=[backed or replace(BOTH, on_down=on_down)]
    )


def test_a_family_that_is_refused_stops_no_other(forwarder: Forwarder, kernel: Kernel):
    """IPv6's rules are written though IPv4's are not, and the trouble is told."""
    kernel.refused = "ip lb_forward"
    forwarder.apply(one())

    assert forwarder.trouble == "File exists"
    assert ["ip6 lb_forward" in each for each in kernel.scripts] == [True]


@pytest.mark.usefixtures("published", "taken_over")
def test_the_first_rules_follow_the_verdicts_that_are_there(forwarder: Forwarder, kernel: Kernel):
    """A restart asks nobody to wait for what `health` has known for long."""
    forwarder.apply(one())

    assert "add element ip lb_forward f1_slots { 0 : 0x6c62" in kernel.scripts[0]
    assert forwarder.pools["pool"].has_up


@pytest.mark.usefixtures("taken_over")
def test_slots_that_were_taken_over_stay_until_there_are_verdicts(
    forwarder: Forwarder, kernel: Kernel, board: BoardWriter
):
    """Servers of the earlier process serve on while nothing is known of them; a new frontend waits."""
    forwarder.apply(one())
    forwarder.settle()
    four, six = kernel.scripts
    assert "flush map ip lb_forward f1_slots" not in four
    assert "flush chain ip lb_forward f1_none" not in four
    assert "flush map ip6 lb_forward f1_slots" in six

    board.publish(PUBLISHED, changed=True)
    written = "add element ip lb_forward f1_slots"
    wait_until(lambda: written in "".join(kernel.scripts), what="it is served", sleep=gevent.sleep)


def test_a_table_of_connections_that_fills_is_an_event(forwarder: Forwarder, monkeypatch: pytest.MonkeyPatch):
    """The kernel drops new connections when it is full: the polling looks at it."""
    log = CapturingLogger()
    forwarder.log = cast("FilteringBoundLogger", log)
    monkeypatch.setattr(connection_room, "connection_room", lambda _: ConnectionRoom(used=85, limit=100))
    wait_until(lambda: log.calls, what="it is logged", sleep=gevent.sleep)

    assert log.calls[0].args == ("conntrack-fills",)
    assert log.calls[0].kwargs == {"used": 85, "limit": 100}


def test_what_somebody_changes_is_written_anew_before_anything_else(forwarder: Forwarder, kernel: Kernel):
    """A change is noticed by the next step, whatever it is for: all of the tables is written."""
    forwarder.apply(one())
    kernel.changed = b"!"
    kernel.scripts.clear()
    forwarder.settle()

    assert ["flush chain ip" in each for each in kernel.scripts] == [True, True]


def test_a_table_is_written_again_where_somebody_was_busy_meanwhile(forwarder: Forwarder, kernel: Kernel):
    """What it holds then may be somebody else's work; the next look sees to it."""
    kernel.meanwhile = b"?"
    forwarder.apply(one())
    assert forwarder.tables.unsure
    wait_until(lambda: not forwarder.tables.unsure, what="written again", sleep=gevent.sleep)

    assert len([each for each in kernel.scripts if "add table ip lb_forward" in each]) == 2


@pytest.mark.usefixtures("published")
def test_all_of_a_table_is_written_again_where_somebody_was_busy(forwarder: Forwarder, kernel: Kernel):
    """Its slots, and what becomes of connections without a server, may be what somebody else has changed."""
    kernel.meanwhile = b"?"
    forwarder.apply(one())
    assert forwarder.tables.unsure
    wait_until(lambda: not forwarder.tables.unsure, what="written again", sleep=gevent.sleep)

    for part in (f"flush map ip lb_forward {MAIN}_slots", f"flush chain ip lb_forward {MAIN}_none"):
        assert len([each for each in kernel.scripts if f"{part}\n" in each]) == 2, part


def test_who_was_lost_before_we_came_loses_its_connections(
    forwarder: Forwarder, board: BoardWriter, monkeypatch: pytest.MonkeyPatch
):
    """A server went down while no `forward` ran: its connections end all the same."""
    ended: dict[int, str] = {}
    monkeypatch.setattr(module, "end_connections", lambda owners, **_: ended.update(owners) or {})
    down = boards.health("a", verdict=HealthVerdict.DOWN)
    board.publish(health_board.encode(boards.health_board(down)), changed=True)
    gevent.sleep(0.2)
    forwarder.apply(one(on_down=OnDown.CLOSE_SESSIONS))

    assert ended == {forwarder.numbers.number("api/main pool/a"): "pool/a"}


@pytest.mark.usefixtures("taken_over")
def test_a_server_that_goes_down_loses_its_connections(
    forwarder: Forwarder, board: BoardWriter, monkeypatch: pytest.MonkeyPatch
):
    """By `on_marked_down: shutdown-sessions`; while it is up nothing ends."""
    ended: dict[int, str] = {}
    monkeypatch.setattr(module, "end_connections", lambda owners, **_: ended.update(owners) or {})
    board.publish(PUBLISHED, changed=True)
    forwarder.apply(one(on_down=OnDown.CLOSE_SESSIONS))
    assert ended == {}

    down = boards.health("a", verdict=HealthVerdict.DOWN)
    board.publish(health_board.encode(boards.health_board(down)), changed=True)
    wait_until(lambda: ended, what="the connections are ended", sleep=gevent.sleep)
    assert ended == {forwarder.numbers.number("api/main pool/a"): "pool/a"}


@pytest.mark.usefixtures("taken_over")
def test_a_backup_loses_its_connections_when_another_server_comes_up(
    forwarder: Forwarder, board: BoardWriter, monkeypatch: pytest.MonkeyPatch
):
    """By `on_up: close-backup-sessions`, also where it is the file that makes it so."""
    ended: dict[int, str] = {}
    monkeypatch.setattr(module, "end_connections", lambda owners, **_: ended.update(owners) or {})
    servers = (server("a"), server("b", backup=True))
    backed = pool("pool", servers=servers, on_up=OnUp.CLOSE_BACKUP_SESSIONS)
    down = boards.health("a", verdict=HealthVerdict.DOWN)
    board.publish(health_board.encode(boards.health_board(down, boards.health("b"))), changed=True)
    forwarder.apply(one(backed=backed))
    assert ended == {}

    board.publish(PUBLISHED, changed=True)
    wait_until(lambda: ended, what="the connections are ended", sleep=gevent.sleep)
    lost = {forwarder.numbers.number("api/main pool/b"): "pool/b"}
    assert ended == lost
    ended.clear()
    forwarder.apply(one(backed=replace(backed, servers=servers[1:])))
    assert ended == {}
    forwarder.apply(one(backed=backed))
    assert ended == lost


def test_a_guard_is_written_once(forwarder: Forwarder, guard: Kernel):
    """In each family, whatever becomes of slots and verdicts; a drain has it drop nobody any more."""
    forwarder.apply(one())
    forwarder.settle()
    assert [each.partition(" {")[0] for each in guard.scripts] == [
        f"add table {family} lb_forward_guard" for family in Family
    ]
    forwarder.frontends = ()
    forwarder.settle()
    assert ["add element" in each for each in guard.scripts] == [True, True, False, False]


def test_a_kernel_without_guards_forwards(forwarder: Forwarder, kernel: Kernel, guard: Kernel):
    """Its reason is known, and no trouble; it is not asked each time."""
    guard.refused = "flags owner"
    forwarder.apply(one())
    forwarder.settle()
    assert forwarder.tables.unguarded == "File exists"
    assert forwarder.trouble == ""
    assert len(kernel.scripts) == 2
    assert guard.scripts == []
