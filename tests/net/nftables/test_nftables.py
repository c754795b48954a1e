"""nftables in the network of this test process: transactions, answers, and tables of our own."""

import errno
import subprocess
from collections.abc import Iterator

import pytest

from appliance.forward.kernel_tables import KernelTables
from appliance.net.nftables.nftables import Nftables, NftablesError, unusable
from appliance.wire.nftables.nftables_commands import Family, delete_table, list_chain

pytestmark = [pytest.mark.kernel, pytest.mark.needs("nft", root=True)]

_TABLE = "lb_test"
_HOOK = "{ type nat hook output priority -100; policy accept; }"


@pytest.fixture
def nftables() -> Iterator[Nftables]:
    """A connection; the network is empty before and after."""
    subprocess.run(["nft", "flush", "ruleset"], check=True)
    made = Nftables()
    yield made
    made.close()
    subprocess.run(["nft", "flush", "ruleset"], check=True)


def _ruleset() -> str:
    return subprocess.run(["nft", "list", "ruleset"], check=True, capture_output=True, text=True).stdout


def test_what_is_added_is_listed(nftables: Nftables):
    """A table with a chain and a rule come back as objects, with the rule's comment."""
    nftables.run(
        f"add table ip6 {_TABLE}\nadd chain ip6 {_TABLE} c {_HOOK}\n"
        f'add rule ip6 {_TABLE} c tcp dport 6443 redirect to :9445 comment "{"x" * 128}"'
    )
    assert "redirect to :9445" in _ruleset()
    found = nftables.run(list_chain(Family.IPV6, _TABLE, "c"))
    assert [each.kind for each in found if each.kind != "metainfo"] == ["chain", "rule"]
    assert found[-1].comment == "x" * 128
    nftables.run(delete_table(Family.IPV6, _TABLE))
    assert _ruleset() == ""


def test_a_list_of_counters_may_be_long(nftables: Nftables):
    """As many as a thousand servers in two frontends have, whose names are long: they can be taken over."""
    comment = "x" * 120
    lines = [f'add counter ip lb_forward s{each}_in {{ comment "{comment}"; }}' for each in range(6000)]
    nftables.run("add table ip lb_forward\n" + "\n".join(lines))

    assert len(KernelTables(connect=lambda: nftables).taken_over()) == 6000


@pytest.mark.promise("kernel", "nftables")
def test_all_or_nothing(nftables: Nftables):
    """A transaction whose last command is refused has done nothing; the error is the kernel's own."""
    with pytest.raises(NftablesError) as refused:
        nftables.run(f"add table ip {_TABLE}\ndelete table ip another")
    assert refused.value.is_because(errno.ENOENT)
    assert not refused.value.is_because(errno.EPERM)
    assert _ruleset() == ""
    with pytest.raises(NftablesError):
        nftables.run("add nonsense")
    assert nftables.run(f"add table ip {_TABLE}") == ()


def test_what_is_not_there(nftables: Nftables):
    """Listing it is an error that says so, without a place in commands that nobody wrote."""
    with pytest.raises(NftablesError, match=r"^No such file") as refused:
        nftables.run(list_chain(Family.IPV4, _TABLE, "c"))
    assert refused.value.is_because(errno.ENOENT)


def test_a_table_of_our_own(nftables: Nftables):
    """Others cannot flush or delete it; we can change it; it ends with the connection."""
    for _ in range(2):
        nftables.own_tables(Family, _TABLE)
    subprocess.run(["nft", "flush", "ruleset"], check=True)
    deleted = subprocess.run(["nft", "delete", "table", "ip", _TABLE], check=False, capture_output=True)
    assert deleted.returncode != 0
    nftables.run(f"add chain ip {_TABLE} c {_HOOK}")
    other = Nftables()
    with pytest.raises(NftablesError) as refused:
        other.own_tables([Family.IPV4], _TABLE)
    assert refused.value.is_because(errno.EPERM)
    other.close()
    assert "flags owner" in _ruleset()
    nftables.close()
    assert _ruleset() == ""


def test_a_table_that_is_there_cannot_become_ours(nftables: Nftables):
    """It has to be removed first."""
    nftables.run(f"add table ip {_TABLE}")
    with pytest.raises(NftablesError) as refused:
        nftables.own_tables([Family.IPV4], _TABLE)
    assert refused.value.is_because(errno.EOPNOTSUPP)


def test_an_answer_that_is_too_long(nftables: Nftables):
    """A table of somebody with very many rules costs an error, and the next answer is right again."""
    rules = [f'add rule ip {_TABLE} c counter comment "{"y" * 128}"'] * 5000
    nftables.run("\n".join((f"add table ip {_TABLE}", f"add chain ip {_TABLE} c {_HOOK}", *rules)))
    with pytest.raises(NftablesError, match="more than"):
        nftables.run(list_chain(Family.IPV4, _TABLE, "c"))
    nftables.run(delete_table(Family.IPV4, _TABLE))
    assert _ruleset() == ""


def test_a_library_that_is_not_there():
    """The reason names Debian's package, as `check --here` does."""
    with pytest.raises(NftablesError, match="libnftables1"):
        Nftables(library="libnothing.so.1")
    assert "libnothing" in str(unusable(library="libnothing.so.1"))
    assert unusable() is None
