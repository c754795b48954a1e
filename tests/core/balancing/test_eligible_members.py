"""Which members take new connections, whatever the pool around them does."""

import pytest
from support.values.snapshots import server

from appliance.core.balancing.eligible_members import EligibleMembers, eligible_members
from appliance.core.balancing.pool_member import PoolMember
from appliance.model.server_states import AdminState, ServerState
from appliance.model.server_weights import operator_weight

pytestmark = pytest.mark.pure


def member(
    name: str, state: ServerState = ServerState.UP, *, backup: bool = False, known: bool = True
) -> PoolMember:
    """Return a server with weight 1; `known` says that its name was resolved."""
    address = ("127.0.0.1", 80) if known else None
    config = server(name, backup=backup)
    made = PoolMember(pool="pool", config=config, address=address, limit=0, seed=1, turn=0.0)
    made.state, made.weight = state, 1.0 if state is ServerState.UP else 0.0
    return made


def test_primaries_that_are_up_come_first():
    """A backup server waits for the last primary."""
    primary, down, backup = member("a"), member("b", ServerState.DOWN), member("c", backup=True)
    assert eligible_members([primary, down, backup], panic=0.0) == EligibleMembers(
        members=(primary,), panic=False
    )
    assert eligible_members([down, backup], panic=0.0) == EligibleMembers(members=(backup,), panic=False)


def test_a_server_without_an_address_is_never_eligible():
    """Nobody can connect to a name that has not been resolved."""
    assert not eligible_members([member("a", known=False)], panic=0.0).members


def test_in_a_panic_the_checks_do_not_count():
    """With too few up those that are down are used too, and those that the operator has drained are not."""
    up, down, drained = member("a"), member("b", ServerState.DOWN), member("c", ServerState.DRAIN)
    drained.admin = AdminState.DRAIN
    assert eligible_members([up, down, drained], panic=0.6) == EligibleMembers(members=(up, down), panic=True)
    assert eligible_members([up, down, drained], panic=0.5) == EligibleMembers(members=(up,), panic=False)


def test_there_is_no_panic_before_the_first_checks():
    """While a check may still find a server up, none that is down is tried."""
    down, checking = member("a", ServerState.DOWN), member("b", ServerState.CHECKING)
    assert eligible_members([down, checking], panic=1.0) == EligibleMembers(members=(), panic=False)


def test_a_panic_leaves_out_whom_the_operator_gave_no_weight():
    """A weight of 0 is the operator's word, not that of a check."""
    members = [member("a"), member("b", state=ServerState.DOWN), member("c", state=ServerState.DOWN)]
    members[1].operator_weight = operator_weight("0")
    chosen = eligible_members(members, panic=0.9)
    assert (chosen.panic, [each.name for each in chosen.members]) == (True, ["a", "c"])


def used(*members: PoolMember, all_backups: bool = False, serving: tuple[PoolMember, ...] = ()) -> str:
    """Return the names of those that take new connections, in one word."""
    chosen = eligible_members(members, panic=0.0, all_backups=all_backups, serving=serving)
    return "".join(each.name for each in chosen.members)


def test_the_first_backup_that_is_up_takes_all():
    """Two servers that are written to at once part for good: one follows the other, in their order."""
    down, first, second = member("a", ServerState.DOWN), member("b", backup=True), member("c", backup=True)
    assert used(down, first, second) == "b"
    assert used(down, second, first) == "c"
    assert used(first, second) == "b"
    assert used(down, member("b", ServerState.DOWN, backup=True), second) == "c"
    first.weight = 0.0
    assert used(down, first, second) == "c"


def test_all_backups_are_used_together_where_that_is_asked_for():
    """As with `option allbackups`."""
    down, first, second = member("a", ServerState.DOWN), member("b", backup=True), member("c", backup=True)
    assert used(down, first, second, all_backups=True) == "bc"
    assert used(member("a"), first, second, all_backups=True) == "a"
    assert used(down, all_backups=True) == ""


@pytest.mark.parametrize("all_backups", [False, True])
def test_no_backup_is_used_before_it_is_known_that_it_has_to_be(all_backups: bool):  # noqa: FBT001  # a parameter
    """At the start nobody is sent to a backup because its check was the first to end."""
    primary, first = member("a", ServerState.CHECKING), member("b", backup=True)
    assert used(primary, first, all_backups=all_backups) == ""
    assert used(primary, first, all_backups=all_backups, serving=(first,)) == "b"
    primary.admin = AdminState.DRAIN
    assert used(primary, first, all_backups=all_backups) == "b"
    primary.admin, primary.operator_weight = AdminState.READY, operator_weight("0")
    assert used(primary, first, all_backups=all_backups) == "b"


def test_a_later_backup_waits_for_the_first_check_of_an_earlier_one():
    """Who goes on with the second one would be parted from all that go to the first a moment later."""
    down, unknown = member("a", ServerState.DOWN), member("b", ServerState.CHECKING, backup=True)
    assert used(down, unknown, member("c", backup=True)) == ""
    assert used(down, unknown, member("c", backup=True), all_backups=True) == "c"
    assert used(down, member("b", backup=True), member("c", ServerState.CHECKING, backup=True)) == "b"
