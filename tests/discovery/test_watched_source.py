"""What an operator reads of a source: the trouble of a resource, until its next answer."""

import time

import pytest

from appliance.discovery.watched_source import OVERDUE, WatchedSource
from appliance.model.snapshot.discovery import MASTERS, Kubernetes, Source, SourceKind
from appliance.net.kubernetes.reflector import ApiServers, Failed, Reflector, Seen
from appliance.wire.kubernetes.requests import Resource

pytestmark = pytest.mark.sockets

_SETTINGS = Kubernetes(kubeconfig=None, token_file=None, ca=None, api=(), server_name=None, family=None)


@pytest.fixture
def source() -> WatchedSource:
    """Give the masters, whose reflectors do not run."""

    def reflect(resource: Resource) -> Reflector:
        return Reflector(resource, _SETTINGS, ApiServers(), lambda _: None)

    return WatchedSource(Source(kind=SourceKind.NODES, what=MASTERS), None, bootstrap=False, reflect=reflect)


@pytest.mark.parametrize(("reason", "age", "told"), [
    ("forbidden", 0.0, True), ("timeout", 0.0, False), ("timeout", OVERDUE + 1, True),
])  # fmt: skip
def test_a_failure_is_a_problem_until_the_next_answer(
    source: WatchedSource,
    reason: str,
    age: float,
    told: bool,  # noqa: FBT001  # a case
):
    """A permanent one at once, another one when the last answer is old; status has it in both cases."""
    reflector = next(iter(source.resources))
    nothing = source.problems(time.time())
    source.failed(Failed(reflector=reflector, server="10.0.0.1:6443", reason=reason, message="no"))
    status = source.resources[reflector].status()
    assert status.error == f"{reason}: no"
    problem = f"discover masters: nodes at 10.0.0.1:6443: {reason}: no"
    assert (problem in source.problems(time.time() + age)) is told

    source.seen(Seen(reflector=reflector, server="10.0.0.1:6443", objects=()))

    assert source.problems(time.time()) == nothing
    answered = source.resources[reflector].status()
    assert (answered.error, answered.failed_at) == (None, status.failed_at)
