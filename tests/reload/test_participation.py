"""What `vrrp` is told of a stop, and of its end, when it answers, refuses or is down."""

from dataclasses import replace
from pathlib import Path

import pytest
import structlog
from support.values import snapshots
from support.values.shared_ips import shared_ip

from appliance.model.paths import Paths
from appliance.net.files import stopped_virtual_ips
from appliance.reload.participation import Participation
from appliance.reload.program_clients import Outcome, ProgramDown
from appliance.wire.lines.control import Answer, AnswerProblem, bad, good

pytestmark = pytest.mark.sockets

_ACCEPTED = snapshots.snapshot(groups=(), pools=(), virtual_routers=(snapshots.virtual_router(name="api"),))


class Vrrp:
    """A vrrp that gives the same answer to everything, and remembers what it was told."""

    def __init__(self) -> None:
        self.outcome: Outcome = good()
        self.told: list[object] = []
        self.programs: set[str] = set()

    def order(self, program: str, command: str, **values: object) -> Outcome:
        """Take what it is told."""
        assert command == "take-part"
        assert program in {"vrrp", "announce"}
        self.told.append(values["wanted"])
        self.programs.add(program)
        return self.outcome


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    """A runtime directory."""
    return Paths(config=tmp_path / "c.yaml", runtime=tmp_path, state=tmp_path)


def _participation(paths: Paths, vrrp: Vrrp) -> Participation:
    return Participation(paths, vrrp, structlog.get_logger())  # type: ignore[arg-type]  # all it uses


def test_what_is_answered_is_told_once(paths: Paths):
    """A stop and its end are two messages; between them there is nothing to say, nor afterwards."""
    vrrp = Vrrp()
    participation = _participation(paths, vrrp)
    assert participation.stop(_ACCEPTED) == good(stopped=["api"])
    participation.converge(_ACCEPTED)
    assert stopped_virtual_ips.are_stopped(paths)
    assert participation.resume(_ACCEPTED) == []
    assert participation.resume(_ACCEPTED) == []
    participation.converge(_ACCEPTED)
    assert not stopped_virtual_ips.are_stopped(paths)
    assert vrrp.told == [False, True]


def test_shared_addresses_are_left_with_virtual_ips(paths: Paths):
    """Both programs are told, and a configuration with neither has nothing to stop."""
    vrrp = Vrrp()
    participation = _participation(paths, vrrp)
    both = replace(_ACCEPTED, shared_ips=(shared_ip(),))
    assert participation.stop(both) == good(stopped=["api", "ingress-all"])
    assert vrrp.programs == {"vrrp", "announce"}
    assert not participation.stop(replace(_ACCEPTED, virtual_routers=())).ok


def test_a_refusal_is_told_again_until_it_is_obeyed(paths: Paths):
    """The answer is no; what is wanted stays so, and `vrrp` hears it again."""
    vrrp = Vrrp()
    participation = _participation(paths, vrrp)
    vrrp.outcome = bad("it is stopping")
    assert participation.stop(_ACCEPTED) == Answer(
        ok=False, errors=(AnswerProblem(message="vrrp: it is stopping"),)
    )
    participation.converge(_ACCEPTED)
    vrrp.outcome = good()
    participation.converge(_ACCEPTED)
    participation.converge(_ACCEPTED)
    assert vrrp.told == [False] * 3


def test_one_that_is_down_is_told_when_it_is_back(paths: Paths):
    """It reads the note at its start; it may have begun just before there was one."""
    vrrp = Vrrp()
    participation = _participation(paths, vrrp)
    vrrp.outcome = ProgramDown(reason="it starts")
    assert participation.stop(_ACCEPTED).ok
    assert participation.resume(_ACCEPTED) == []
    vrrp.outcome = good()
    participation.converge(_ACCEPTED)
    assert vrrp.told == [False, True, True]


def test_a_new_reload_program_says_what_is_noted(paths: Paths):
    """Its predecessor may have been killed between the note and the message."""
    stopped_virtual_ips.note_stop(paths)
    vrrp = Vrrp()
    _participation(paths, vrrp).converge(_ACCEPTED)
    assert vrrp.told == [False]


def test_nothing_is_told_where_there_are_no_virtual_ips(paths: Paths):
    """A stop is refused, and leaves no note."""
    vrrp = Vrrp()
    participation = _participation(paths, vrrp)
    without = snapshots.snapshot(groups=(), pools=(), virtual_routers=())
    assert not participation.stop(without).ok
    participation.converge(without)
    assert vrrp.told == []
    assert not stopped_virtual_ips.are_stopped(paths)


def test_a_note_that_cannot_be_written_is_the_answer(paths: Paths):
    """Nothing is stopped then: a vrrp that is started again would not know."""
    vrrp = Vrrp()
    gone = Paths(config=paths.config, runtime=paths.runtime / "gone", state=paths.state)
    assert not _participation(gone, vrrp).stop(_ACCEPTED).ok
    assert vrrp.told == []
