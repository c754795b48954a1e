"""The redirects of a program, with rules that a test can break."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import gevent
import pytest
from structlog.testing import CapturingLogger
from support.processes.greenlets import until
from support.values.snapshots import frontend, group, redirect, snapshot

from appliance.core.redirect.rules import Redirection
from appliance.model.paths import Paths
from appliance.model.snapshot.frontends import Bind
from appliance.net.nftables.nftables import NftablesError
from appliance.net.tracking.track_check import LookResult
from appliance.redirect import redirector as module
from appliance.redirect.kernel_rules import KernelRules
from appliance.redirect.redirector import Redirector
from appliance.wire.nftables.nftables_commands import Family

pytestmark = pytest.mark.sockets

_REDIRECTED = frontend("k", binds=[Bind(host="0.0.0.0", port=9445)], redirect=redirect(interval=0.01))
_GIVEN = snapshot(groups=[group("api", frontends=[_REDIRECTED])])


class _Rules(KernelRules):
    """Rules that only count, and fail as they are told."""

    def __init__(self) -> None:
        super().__init__(CapturingLogger())  # type: ignore[arg-type]  # it has the same methods
        self.installs = 0
        self.wanted: list[Redirection] = []
        self.monitor: Exception | None = None
        self.failure: Exception | None = None

    def were_on(self) -> frozenset[str]:
        """Nothing was."""
        return frozenset()

    def taken_by_monitor(self, families: Iterable[Family]) -> frozenset[Family]:
        """Fail, or see nothing."""
        del families
        if self.monitor:
            raise self.monitor
        return frozenset()

    def install(self, families: Iterable[Family], wanted: Iterable[Redirection]) -> bool:
        """Fail, or count."""
        del families
        self.wanted = list(wanted)
        self.installs += 1
        if self.failure:
            raise self.failure
        return False


class _Up:
    """Whatever is looked at, it is fine."""

    def __init__(self, *_: object) -> None:
        self.wait = gevent.sleep

    def look(self) -> LookResult:
        """See nothing wrong."""
        return LookResult(up=True, detail="")

    def close(self) -> None:
        """Have nothing to close."""


@pytest.fixture
def made(tmp_path: Path) -> Iterator[tuple[Redirector, _Rules, list[BaseException | None]]]:
    """A redirector, its rules, and the faults that it told."""
    rules = _Rules()
    faults: list[BaseException | None] = []
    paths = Paths(config=tmp_path / "a", runtime=tmp_path, state=tmp_path)
    redirector = Redirector(paths, CapturingLogger(), rules, on_fault=faults.append)  # type: ignore[arg-type]  # the same
    redirector.apply(_GIVEN)
    yield redirector, rules, faults
    redirector.close(keep_flows=False)


def test_a_refusal_of_the_kernel_is_tried_again(made: tuple[Redirector, _Rules, list[BaseException | None]]):
    """It is told in the status while it lasts; each look is another try."""
    redirector, rules, faults = made
    rules.failure = NftablesError("Operation not permitted")
    until(lambda: redirector.trouble, what="it is told")
    assert [each.state for each in redirector.statuses()] == ["failed"]
    rules.failure = None
    until(lambda: not redirector.trouble, what="it works again")
    assert [each.state for each in redirector.statuses()] == ["off"]
    assert faults == []


def test_where_monitor_cannot_be_seen_ours_are_made(
    made: tuple[Redirector, _Rules, list[BaseException | None]],
):
    """Rules have to go when workers do, whatever stands in a table of others."""
    redirector, rules, _ = made
    rules.monitor = NftablesError("an answer that is not understood")
    before = rules.installs
    until(lambda: rules.installs > before + 2, what="it goes on")
    assert redirector.trouble == ""


def test_a_bug_ends_the_program(made: tuple[Redirector, _Rules, list[BaseException | None]]):
    """Without its looks it would leave rules where nobody accepts."""
    _, rules, faults = made
    bug = RuntimeError("a bug")
    rules.failure = bug
    until(lambda: faults, what="it is told")
    assert faults == [bug]


def test_nothing_leads_to_a_proxy_that_stops(
    made: tuple[Redirector, _Rules, list[BaseException | None]], monkeypatch: pytest.MonkeyPatch
):
    """Its rules go with its last words, though its workers still accept, and come with the next snapshot."""
    redirector, rules, _ = made
    for track in ("ProxyTrack", "PoolTrack"):
        monkeypatch.setattr(module, track, _Up)
    until(lambda: rules.wanted, what="its rules are there")
    redirector.withdraw("proxy-api")
    assert (rules.wanted, redirector.statuses()[0].reason) == ([], "proxy-api stops")
    redirector.apply(_GIVEN)
    assert [each.name for each in rules.wanted] == ["api/k"]
