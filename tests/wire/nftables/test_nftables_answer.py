"""What nftables answers."""

import pytest

from appliance.wire.nftables.nftables_answer import (
    ANSWER_LIMIT,
    NftablesAnswerError,
    NftablesObject,
    decode,
)

pytestmark = pytest.mark.pure

_CHAIN = (
    b'{"nftables": [{"metainfo": {"version": "1.0.6", "json_schema_version": 1}}, '
    b'{"chain": {"family": "ip", "table": "t", "name": "c", "handle": 1}}, '
    b'{"rule": {"family": "ip", "table": "t", "chain": "c", "handle": 2, "comment": "x", "expr": []}}]}\n'
)


def test_objects_come_with_their_kind():
    """In their order, with what describes the answer itself."""
    found = decode(_CHAIN)
    assert [each.kind for each in found] == ["metainfo", "chain", "rule"]
    assert [each.comment for each in found] == ["", "", "x"]


def test_nothing_is_an_answer():
    """A transaction that lists nothing has an empty one; what is no mapping is passed over."""
    assert decode(b"") == decode(b"\n") == decode(b'{"nftables": []}') == ()
    assert decode(b'{"nftables": [{"rule": 7, "set": {}}]}') == (NftablesObject(kind="set", fields={}),)


@pytest.mark.parametrize("answer", [b"x", b"[]", b"{}", b'{"nftables": 1}', b'{"nftables": [1]}'])
def test_anything_else_is_one_error(answer: bytes):
    """Whatever the library says."""
    with pytest.raises(NftablesAnswerError):
        decode(answer)


def test_a_long_answer_is_refused_unread():
    """Somebody's million of rules costs an error."""
    with pytest.raises(NftablesAnswerError, match="more than"):
        decode(b" " * (ANSWER_LIMIT + 1))
