"""Commands as nft(8) reads them; tests/net/nftables has the kernel do them."""

import pytest

from appliance.wire.nftables.nftables_commands import Family, delete_table, list_chain, list_counters

pytestmark = pytest.mark.pure


def test_commands_name_the_family_first():
    """A table belongs to a family."""
    assert delete_table(Family.IPV6, "t") == "delete table ip6 t"
    assert list_chain(Family.IPV4, "t", "c") == "list chain ip t c"
    assert list_counters(Family.IPV4, "t") == "list counters table ip t"
