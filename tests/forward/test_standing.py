"""When tables count as changed: by what the kernel tells, whoever else is busy there."""

from typing import cast

import pytest

from appliance.forward.standing import Standing
from appliance.net.netlink.table_contents import TableContents
from appliance.net.nftables.nftables import NftablesError
from appliance.wire.nftables.nftables_commands import Family

pytestmark = pytest.mark.sockets


class Contents:
    """Tables that a test changes; `asked` counts what takes time."""

    def __init__(self) -> None:
        self.number = 0xFFFFFFFE  # the kernel's number begins anew some day
        self.held = {Family.IPV4: b"", Family.IPV6: b""}
        self.asked = 0
        self.broken = False

    def generation(self) -> int:
        """Return the number of the last transaction."""
        if self.broken:
            raise PermissionError("not allowed")
        return self.number

    def digest(self, family: Family, _: str) -> bytes:
        """Return what a table holds."""
        self.asked += 1
        return self.held[family]

    def change(self, family: Family | None = None) -> None:
        """Have somebody change a table, or something that is none of ours."""
        self.number = (self.number + 1) & 0xFFFFFFFF
        if family:
            self.held[family] += b"x"


@pytest.fixture
def contents() -> Contents:
    """Empty tables."""
    return Contents()


@pytest.fixture
def standing(contents: Contents) -> Standing:
    """Both tables written once."""
    made = Standing(connect=lambda: cast("TableContents", contents))
    assert made.unchanged()
    for family in Family:
        with made.writing(family):
            contents.change(family)
    contents.asked = 0
    return made


def test_while_nobody_does_anything_nothing_is_compared(standing: Standing, contents: Contents):
    """The generation alone says so."""
    assert standing.unchanged()
    assert contents.asked == 0


def test_changes_of_other_tables_are_compared_once(standing: Standing, contents: Contents):
    """They cost one comparison, and are no change."""
    contents.change()

    assert standing.unchanged()
    assert standing.unchanged()
    assert contents.asked == 2


@pytest.mark.parametrize("family", Family)
def test_a_change_of_ours_is_one(standing: Standing, contents: Contents, family: Family):
    """Until it has been written anew."""
    contents.change(family)

    assert not standing.unchanged()
    assert not standing.unchanged()
    standing.forget()
    assert standing.unchanged()


def test_a_change_before_our_own_is_not_covered_by_it(standing: Standing, contents: Contents):
    """Somebody changed IPv6, then we write IPv4: IPv6 is still another than it was."""
    contents.change(Family.IPV6)
    with standing.writing(Family.IPV4):
        contents.change(Family.IPV4)

    assert standing.knows(Family.IPV4)
    assert not standing.unchanged()


def test_nobody_knows_a_table_that_others_may_have_changed_while_we_wrote(
    standing: Standing, contents: Contents
):
    """It has to be written once more."""
    with standing.writing(Family.IPV4):
        contents.change(Family.IPV4)
        contents.change()

    assert not standing.knows(Family.IPV4)
    assert standing.unchanged()


def test_a_transaction_that_was_refused_changes_nothing(standing: Standing):
    """What the tables held they hold still."""
    with pytest.raises(NftablesError), standing.writing(Family.IPV4):
        raise NftablesError("File exists")

    assert standing.unchanged()


def test_a_kernel_that_does_not_answer_is_told_as_one_error(standing: Standing, contents: Contents):
    """Callers know one error."""
    contents.broken = True

    with pytest.raises(NftablesError, match="not allowed"):
        standing.unchanged()
