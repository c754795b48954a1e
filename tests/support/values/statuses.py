"""Parts of a status as programs show it, with the few fields that a test is about."""

from msgspec.structs import replace

from appliance.core.status.status import CheckStatus, ServerStatus
from appliance.model.check_results import CheckResult
from appliance.model.server_states import ServerState
from appliance.wire.lines.discovery_status import DiscoveryStatus, SourceStatus

_CHECK = CheckStatus(
    result=CheckResult.L7OK, status=None, detail="", duration=0.001, ended_at=190.0, streak=1, failed=0
)
_SERVER = ServerStatus(
    name="m0",
    address="127.0.0.1:6443",
    resolved="127.0.0.1",
    state=ServerState.UP,
    since=100.0,
    backup=False,
    weight=1,
    operator_weight=None,
    effective_weight=1.0,
    check=_CHECK,
    current=0,
    total=0,
    failed=0,
    queued=0,
    bytes_in=0,
    bytes_out=0,
    given_up=0,
    retried=0,
    redispatched=0,
    client_aborts=0,
    server_aborts=0,
    connected=0,
    ended=0,
    queue_seconds=0.0,
    connect_seconds=0.0,
    session_seconds=0.0,
    longest_queue=0.0,
    longest_connect=0.0,
    longest_session=0.0,
    downs=0,
    down_seconds=0.0,
    failed_up=0,
)


def checked(**changes: object) -> CheckStatus:
    """Return a check that has passed."""
    return replace(_CHECK, **changes)


def server_status_of(**changes: object) -> ServerStatus:
    """Return a server that is up."""
    return replace(_SERVER, **changes)


def discovery(*sources: SourceStatus, problems: tuple[str, ...] = ()) -> DiscoveryStatus:
    """Return what `discover` answers."""
    return DiscoveryStatus(
        program="discover",
        pid=7,
        started_at=1.5,
        snapshot=3,
        pending=None,
        installed=False,
        sources=sources,
        problems=problems,
        not_kept={},
    )
