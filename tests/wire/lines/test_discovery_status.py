"""What `discover` answers travels as the values of an answer."""

import pytest

from appliance.wire.lines import control
from appliance.wire.lines.discovery_status import (
    DiscoveryStatus,
    FoundStatus,
    ResourceStatus,
    SourceStatus,
)
from appliance.wire.lines.status_answer import StatusAnswerError, decode, encode

pytestmark = pytest.mark.pure

STATUS = DiscoveryStatus(
    program="discover",
    pid=7,
    started_at=1.5,
    snapshot=3,
    pending=None,
    installed=True,
    sources=(
        SourceStatus(
            name="masters",
            pools=("masters",),
            servers=(FoundStatus(name="master-0", host="10.0.0.1", held=False),),
            seen_at=2.5,
            changed_at=None,
            hold=None,
            proxy=False,
            resources=(
                ResourceStatus(what="nodes", server="10.0.0.1:6443", seen_at=2.5, error=None, failed_at=None),
            ),
        ),
    ),
    problems=("a problem",),
    not_kept={"/var/lib/appliance": "read-only"},
)


def test_status_comes_back():
    """What is answered is what `status` reads, over a control line."""
    line = control.encode_answer(control.good(**encode(STATUS)))
    assert decode(control.decode_answer(line).values, DiscoveryStatus) == STATUS


def test_anything_else_is_an_error():
    """An answer of another program is not taken for it."""
    with pytest.raises(StatusAnswerError):
        decode({"program": "discover"}, DiscoveryStatus)
