"""A change of configuration, everywhere or nowhere, with programs that behave, refuse, hang and die."""

import errno
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import structlog
from gevent import socket
from structlog.testing import CapturingLogger
from support.reload.fake_programs import FakeProgram

from appliance.core.rollout.reload_retries import LOSSES, PAUSES
from appliance.model.paths import NODE_VARIABLE, Paths
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.control.control_client import ControlClient
from appliance.net.files import snapshots, start_note
from appliance.net.files.degraded import Degraded, degraded_path, read_degraded, write_degraded
from appliance.net.sources.judging import Judged, judge
from appliance.net.sources.read_files import ReadFiles
from appliance.reload import boot, program_clients, refusals
from appliance.reload.program_clients import Outcome, ProgramClients, ProgramTimeouts
from appliance.reload.reload_transaction import ReloadTransaction
from appliance.wire.lines.control import Answer, AnswerProblem

pytestmark = pytest.mark.sockets

_CONFIG = """\
api:
  frontends:
    kube-api: {{ bind: ["127.0.0.1:{port}"], pool: masters }}
pools:
  masters:
    servers:
      master-0: {{ address: "127.0.0.1:6443", weight: {weight} }}
{more}
"""


class House:
    """An appliance of fakes: `health` and `proxy-api` run, snapshot 1 is accepted."""

    def __init__(self, root: Path) -> None:
        self.paths = Paths(config=root / "c.yaml", runtime=root / "run", state=root / "state")
        self.paths.runtime.mkdir()
        self.paths.state.mkdir()
        self.journal: list[str] = []
        self.write()
        first = judge(self.paths, number=1).snapshot
        assert first is not None
        snapshots.accept(self.paths, first)
        self.health = FakeProgram(self.paths, "health", self.journal, obeys=1)
        self.api = FakeProgram(self.paths, "proxy-api", self.journal, obeys=1)
        self.log = CapturingLogger()
        patience = ProgramTimeouts(life=1.0, start=1.0, prepare=0.5, commit=0.5, abort=0.5)
        self.transaction = ReloadTransaction(
            self.paths,
            first,
            ProgramClients(self.paths, timeouts=patience),
            structlog.wrap_logger(self.log, processors=[]),
        )

    def write(self, *, port: int = 9445, weight: int = 1, more: str = "") -> None:
        """Write the operator's file."""
        self.paths.config.write_text(_CONFIG.format(port=port, weight=weight, more=more))

    @property
    def accepted(self) -> int:
        """Number of the accepted snapshot, as a program that starts reads it."""
        found = snapshots.read(self.paths.accepted)
        assert found is not None
        return found.number

    def close(self) -> None:
        """Stop everything."""
        self.health.stop()
        self.api.stop()


@pytest.fixture
def house() -> Iterator[House]:
    """Give a house in a short path, as sockets need."""
    with tempfile.TemporaryDirectory(prefix="lb-") as directory:
        made = House(Path(directory))
        yield made
        made.close()


def test_everybody_prepares_before_anybody_commits(house: House):
    """All prepare, then health commits, then the proxies; the snapshot is accepted and kept as last good."""
    house.write(weight=2)
    answer = house.transaction.reload()
    assert answer.ok
    assert answer.values["generation"] == 2
    assert answer.values["changed"] == ["pools.masters.servers.master-0"]
    assert sorted(house.journal[:2]) == ["health prepare 2", "proxy-api prepare 2"]
    assert house.journal[2:] == ["health commit 2", "proxy-api commit 2"]
    assert house.accepted == 2
    assert snapshots.read(house.paths.last_good) == snapshots.read(house.paths.accepted)


def test_a_change_connects_to_each_program_once(house: House, monkeypatch: pytest.MonkeyPatch):
    """A connect wakes the program up, and takes longer than a question."""
    made = _connections(monkeypatch)
    house.write(weight=2)
    assert house.transaction.reload().ok
    assert sorted(each.path.stem for each in made) == ["health", "proxy-api"]
    assert all(each.closed.is_set() for each in made)


def test_a_program_that_is_replaced_in_the_middle_is_connected_to_again(
    house: House, monkeypatch: pytest.MonkeyPatch
):
    """Its successor gets the commit, and is no program that has gone away."""
    made, accept = _connections(monkeypatch), snapshots.accept

    def accept_then(paths: Paths, snapshot: Snapshot) -> None:
        accept(paths, snapshot)
        next(each for each in made if each.path.stem == "health")._socket.shutdown(socket.SHUT_RDWR)

    monkeypatch.setattr(snapshots, "accept", accept_then)
    house.write(weight=2)
    assert house.transaction.reload().ok
    assert (house.health.obeys, house.api.obeys) == (2, 2)
    assert sorted(each.path.stem for each in made) == ["health", "health", "proxy-api"]
    assert all(each.closed.is_set() for each in made)


def _connections(monkeypatch: pytest.MonkeyPatch) -> list[ControlClient]:
    """Return the list of all connections that `reload` makes from now on."""
    made: list[ControlClient] = []

    class Listed(ControlClient):
        def __init__(self, path: Path, *, timeout: float) -> None:
            super().__init__(path, timeout=timeout)
            made.append(self)

    monkeypatch.setattr(program_clients, "ControlClient", Listed)
    return made


def test_nothing_changed_asks_nobody(house: House):
    """A file that means the same is answered as unchanged, with no program asked and no new number."""
    house.paths.config.write_text("# a comment\n" + house.paths.config.read_text())
    answer = house.transaction.reload()
    assert answer.ok
    assert answer.values["unchanged"] is True
    assert answer.values["changed"] == []
    assert answer.values["generation"] == 1
    assert house.journal == []


def test_every_error_is_answered(house: House):
    """A file with several errors is answered with all of them and their lines; nobody is asked."""
    house.write(weight=-1, more="nonsense: 1\nmore-nonsense: 2")
    answer = house.transaction.reload()
    assert not answer.ok
    assert len(answer.errors) == 3
    assert all(each.line for each in answer.errors)
    assert house.journal == []
    assert house.accepted == 1


def test_a_file_that_is_not_there(house: House):
    """A missing file is an error like others."""
    house.paths.config.unlink()
    answer = house.transaction.reload()
    assert "No such file" in answer.errors[0].message


def test_one_refusal_aborts_everywhere(house: House):
    """A proxy that cannot bind has its reason answered; all forget the snapshot, nothing is accepted."""
    house.api.refuses = AnswerProblem(message="address in use", path="api.frontends.kube-api.bind")
    house.write(port=9446)
    answer = house.transaction.reload()
    assert answer.errors == (
        AnswerProblem(message="proxy-api: address in use", path="api.frontends.kube-api.bind"),
    )
    assert sorted(house.journal[2:]) == ["health abort 2", "proxy-api abort 2"]
    assert (house.health.obeys, house.api.obeys, house.accepted) == (1, 1, 1)
    assert house.health.pending is None


def test_a_rehearsal_changes_nothing(house: House):
    """Everybody prepares and forgets it; the answer has what would change, and the next reload does it."""
    house.write(weight=2, port=9446)
    answer = house.transaction.rehearse()
    assert answer.ok
    assert [(each["path"], each["old"], each["new"], each["takes"]) for each in answer.values["changes"]] == [
        ("api.frontends.kube-api.bind", "127.0.0.1:9445", "127.0.0.1:9446", "generation"),
        ("pools.masters.servers.master-0.weight", "1", "2", "live"),
    ]
    assert answer.values["generations"] == ["proxy-api"]
    assert sorted(house.journal[:2]) == ["health prepare 2", "proxy-api prepare 2"]
    assert sorted(house.journal[2:]) == ["health abort 2", "proxy-api abort 2"]
    assert (house.health.obeys, house.api.obeys, house.accepted) == (1, 1, 1)
    assert (house.health.pending, house.api.pending) == (None, None)
    assert house.transaction.reload().values["changed"] == [
        "api.frontends.kube-api",
        "pools.masters.servers.master-0",
    ]


def test_a_rehearsal_says_what_is_refused(house: House):
    """By a program, beside what would change; by the file, alone; by the machine, before anybody is asked."""
    house.api.refuses = AnswerProblem(message="address in use", path="api.frontends.kube-api.bind")
    house.write(port=9446)
    answer = house.transaction.rehearse()
    assert not answer.ok
    assert [each.message for each in answer.errors] == ["proxy-api: address in use"]
    assert len(answer.values["changes"]) == 1
    assert house.health.pending is None
    house.journal.clear()
    house.write(more="group: no-such-group")
    assert [each.path for each in house.transaction.rehearse().errors] == ["group"]
    house.write(more="nonsense: 1")
    assert [each.path for each in house.transaction.rehearse().errors] == ["nonsense"]
    assert house.journal == []


def test_a_rehearsal_of_nothing_asks_nobody(house: House):
    """The file as it is obeyed needs no program to be asked, and a comment is no change."""
    house.paths.config.write_text("# a comment\n" + house.paths.config.read_text())
    answer = house.transaction.rehearse()
    assert (answer.ok, answer.values["changes"], house.journal) == (True, [], [])


def test_a_rehearsal_names_who_is_down(house: House):
    """Nobody knows whether that program would refuse it."""
    house.api.stop()
    house.write(weight=2)
    answer = house.transaction.rehearse()
    assert answer.ok
    assert "proxy-api is not running" in str(answer.values["warnings"])


def test_a_rehearsal_on_a_full_disk_is_refused(house: House, monkeypatch: pytest.MonkeyPatch):
    """What cannot be proposed cannot be tried, and the reason is answered."""

    def full(_: Paths, proposed: Snapshot) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", f"{proposed.number}.json")

    house.write(weight=2)
    monkeypatch.setattr(snapshots, "propose", full)
    answer = house.transaction.rehearse()
    assert not answer.ok
    assert "No space left on device" in answer.errors[0].message
    assert sorted(house.journal) == ["health abort 2", "proxy-api abort 2"]


def test_a_group_that_does_not_exist_is_refused(house: House):
    """By the name of the key, before anybody is asked."""
    house.write(weight=2, more="group: no-such-group")
    answer = house.transaction.reload()
    assert (answer.ok, answer.errors[0].path) == (False, "group")
    assert "no-such-group" in answer.errors[0].message
    assert house.journal == []


def test_a_log_file_that_cannot_be_had_is_refused(house: House, tmp_path: Path):
    """Before anybody is asked, by the name of the key; one that can be is taken."""
    house.write(weight=2, more=f"log: {{ file: {tmp_path}/none/a.log }}")
    answer = house.transaction.reload()
    assert (answer.ok, answer.errors[0].path) == (False, "log.file")
    assert house.journal == []
    house.write(weight=2, more=f"log: {{ file: {tmp_path}/a.log }}")
    assert house.transaction.reload().ok


def test_a_refused_number_is_not_used_again(house: House):
    """The next attempt has a number of its own, so nobody can take it for the refused one."""
    house.api.refuses = AnswerProblem(message="no")
    house.write(port=9446)
    house.transaction.reload()
    house.api.refuses = None
    house.write(port=9447)
    assert house.transaction.reload().values["generation"] == 3
    assert (house.health.obeys, house.api.obeys, house.accepted) == (3, 3, 3)


def test_a_program_that_hangs_refuses_in_time(house: House):
    """One that does not answer prepare within its time stands in the way, and is named."""
    house.health.hangs_in = "prepare"
    house.write(weight=2)
    answer = house.transaction.reload()
    assert [each.message.split(":")[0] for each in answer.errors] == ["health"]
    assert "no answer to prepare" in answer.errors[0].message
    assert house.accepted == 1


def test_a_program_that_dies_of_it_refuses(house: House):
    """A configuration of which a program dies is not accepted."""
    house.api.dies_in = "prepare"
    house.write(weight=2)
    assert not house.transaction.reload().ok
    assert house.accepted == 1
    assert house.health.pending is None


def _again(house: House, monkeypatch: pytest.MonkeyPatch) -> Answer:
    """Return the answer to the next try, as soon as its time has come."""
    due = time.monotonic() + max(PAUSES)
    with monkeypatch.context() as later:
        later.setattr(refusals.time, "monotonic", lambda: due)
        assert house.transaction.is_to_be_tried_again()
    return house.transaction.try_again()


def test_a_refusal_in_passing_is_tried_again(house: House, monkeypatch: pytest.MonkeyPatch):
    """A program that went away as it prepared is back: the same files are accepted, and nobody had to ask."""
    house.api.dies_in = "prepare"
    house.write(weight=2)
    answer = house.transaction.reload()
    assert (answer.ok, answer.values) == (False, {"again_in": PAUSES[0]})
    assert not house.transaction.is_to_be_tried_again()
    house.api.dies_in = None
    house.api.start()
    assert _again(house, monkeypatch).ok
    assert (house.health.obeys, house.api.obeys) == (house.accepted, house.accepted)
    assert house.accepted > 1
    assert house.transaction.again_in is None


def test_tries_are_told_once_and_end(house: House, monkeypatch: pytest.MonkeyPatch):
    """One warning for the refusal, one where it is given up; who asks then has all tries again."""
    house.api.refuses = AnswerProblem(message="address in use")
    house.write(weight=2)
    answer = house.transaction.reload()
    for pause in PAUSES:
        assert answer.values == {"again_in": pause}
        answer = _again(house, monkeypatch)
    assert (answer.ok, answer.values, house.transaction.again_in) == (False, {}, None)
    names = [call.args[0] if call.args else call.kwargs["event"] for call in house.log.calls]
    assert names.count("reload-refused") == names.count("reload-given-up") == 1
    assert names.count("reload-refused-again") == len(PAUSES) - 1
    assert house.transaction.reload().values == {"again_in": PAUSES[0]}


def test_files_that_cost_a_program_each_time_are_given_up(house: House, monkeypatch: pytest.MonkeyPatch):
    """It would cost the virtual IPs each time."""
    house.api.dies_in = "prepare"
    house.write(weight=2)
    answer = house.transaction.reload()
    for pause in PAUSES[: LOSSES - 1]:
        assert answer.values == {"again_in": pause}
        house.api.start()
        answer = _again(house, monkeypatch)
    assert answer.values == {}
    assert house.transaction.again_in is None


def test_what_is_wrong_in_the_files_is_final(house: House):
    """Only other files are another reload."""
    house.write(weight=-1)
    assert house.transaction.reload().values == {}
    assert house.transaction.again_in is None


def test_files_that_have_changed_meanwhile_are_not_tried(house: House, monkeypatch: pytest.MonkeyPatch):
    """Nobody has asked for those, and those that were asked for are gone."""
    house.api.refuses = AnswerProblem(message="address in use")
    house.write(weight=2)
    house.transaction.reload()
    house.write(weight=3)
    later = time.monotonic() + PAUSES[0]
    monkeypatch.setattr(refusals.time, "monotonic", lambda: later)
    assert not house.transaction.is_to_be_tried_again()
    assert house.transaction.again_in is None


def test_what_was_forced_is_forced_again(house: House, monkeypatch: pytest.MonkeyPatch):
    """Who asked has said what it may cost."""
    asked: list[bool] = []
    prepare = ProgramClients.prepare

    def noted(
        self: ProgramClients, programs: Iterable[str], number: int, *, forced: bool = False
    ) -> dict[str, Outcome]:
        asked.append(forced)
        return prepare(self, programs, number, forced=forced)

    monkeypatch.setattr(ProgramClients, "prepare", noted)
    house.api.refuses = AnswerProblem(message="address in use")
    house.write(weight=2)
    house.transaction.reload(forced=True)
    _again(house, monkeypatch)
    assert asked == [True, True]


def test_a_program_that_is_down_does_not_stand_in_the_way(house: House):
    """The change is made without it and the answer says so; it starts with the new snapshot."""
    house.api.stop()
    house.write(weight=2)
    answer = house.transaction.reload()
    assert answer.ok
    assert "proxy-api is not running" in str(answer.values["warnings"])
    assert house.journal == ["health prepare 2", "health commit 2"]
    house.api.start()
    assert house.api.obeys == 2


@pytest.mark.programs
def test_a_program_that_runs_and_cannot_be_asked_refuses(house: House):
    """It would go on with what it obeys, and nobody would know."""
    house.api.stop()
    environment = {**os.environ, **house.paths.environment()}
    waits = [sys.executable, "-c", "import sys; sys.stdin.read()", "-m", "appliance.programs.proxy", "api"]
    with subprocess.Popen(waits, stdin=subprocess.PIPE, env=environment):
        house.write(weight=2)
        answer = house.transaction.reload()
    assert [each.message.split(":")[0] for each in answer.errors] == ["proxy-api"]
    assert "does not answer" in answer.errors[0].message
    assert house.accepted == 1


def test_a_runtime_directory_that_was_removed_is_filled_again(house: House):
    """Programs that start find what is accepted, with the next look."""
    shutil.rmtree(house.paths.runtime)
    house.transaction.converge(everybody=False)
    assert house.accepted == 1
    assert snapshots.read(house.paths.snapshot(1)) == snapshots.read(house.paths.accepted)


def test_past_the_point_of_no_return_there_is_only_forward(house: House):
    """Who hangs in the commit makes the answer no, everybody else commits, and it is led there later."""
    house.health.hangs_in = "commit"
    house.write(weight=2)
    answer = house.transaction.reload()
    assert not answer.ok
    assert [each.message.split(":")[0] for each in answer.errors] == ["health"]
    assert "this is retried" in answer.errors[0].message
    assert answer.values["generation"] == 2
    assert (house.api.obeys, house.accepted) == (2, 2)
    house.health.hangs_in = None
    house.transaction.converge(everybody=False)
    assert house.health.obeys == 2


def test_a_program_with_another_snapshot_is_led_back(house: House):
    """One that missed a change gets it; the others are not asked."""
    house.write(weight=2)
    house.transaction.reload()
    house.api.obeys = 1
    house.journal.clear()
    house.transaction.converge(everybody=False)
    assert house.journal == ["proxy-api prepare 2", "proxy-api commit 2"]


def test_a_start_tells_everybody(house: House):
    """At its start the program makes sure of all, which also ends what was left prepared."""
    house.api.pending = 7
    house.transaction.converge(everybody=True)
    assert [each for each in house.journal if each.startswith("proxy-api")] == [
        "proxy-api prepare 1",
        "proxy-api commit 1",
    ]
    assert house.api.pending is None


def test_a_program_that_cannot_be_led_is_said_once(house: House):
    """The same failure again and again is one line in the log."""
    house.api.obeys, house.api.refuses = 0, AnswerProblem(message="no")
    for _ in range(3):
        house.transaction.converge(everybody=False)
    assert [call.args[0] if call.args else call.kwargs["event"] for call in house.log.calls] == [
        "converge-failed"
    ]


def test_a_new_group_that_cannot_bind_is_refused(house: House):
    """Although its program does not run yet, its occupied port is an error with its place."""
    with socket.socket() as occupied:
        occupied.bind(("127.0.0.1", 0))
        occupied.listen()
        port = occupied.getsockname()[1]
        bind = f'ingress: {{ frontends: {{ http: {{ bind: ["127.0.0.1:{port}"], pool: masters }} }} }}'
        house.write(more=bind)
        answer = house.transaction.reload()
    assert [each.path for each in answer.errors] == ["ingress.frontends.http.bind"]
    assert house.accepted == 1


def test_a_new_group_may_bind_a_virtual_ip(house: House):
    """It is bound beforehand where it is not held; one that goes by the same reload is an error."""
    group = 'ingress: { frontends: { http: { bind: ["192.0.2.200:9443"], pool: masters } } }'
    vips = 'virtual_ips: { api: { addresses: ["192.0.2.%d/24"], interface: eth0, router_id: 42 } }'
    house.write(more=vips % 200)
    assert house.transaction.reload().ok
    house.write(more=f"{vips % 201}\n{group}")
    (error,) = house.transaction.reload().errors
    assert error.path == "ingress.frontends.http.bind"
    house.write(more=f"{vips % 200}\n{group}")
    assert house.transaction.reload().ok


def test_without_a_supervisor_a_new_program_is_warned_of(house: House):
    """The configuration is accepted, and the answer says that nobody could start the new program."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    bind = f'ingress: {{ frontends: {{ http: {{ bind: ["127.0.0.1:{port}"], pool: masters }} }} }}'
    house.write(more=bind)
    answer = house.transaction.reload()
    assert answer.ok
    assert "supervisor.sock" in str(answer.values["warnings"])


def test_a_state_directory_that_is_gone_is_a_warning(house: House):
    """A copy that cannot be written does not stop a change."""
    house.paths.state.rmdir()
    house.write(weight=2)
    answer = house.transaction.reload()
    assert answer.ok
    assert "last-good" in str(answer.values["warnings"])


def test_a_copy_that_cannot_be_written_does_not_keep_a_new_program_down(house: House):
    """Each step after the acceptance is tried, whatever became of the others, and each failure is told."""
    house.paths.state.rmdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    bind = f'ingress: {{ frontends: {{ http: {{ bind: ["127.0.0.1:{port}"], pool: masters }} }} }}'
    house.write(more=bind)
    warnings = str(house.transaction.reload().values["warnings"])
    assert "last-good" in warnings
    assert "supervisor.sock" in warnings


@pytest.mark.parametrize("left", [b"{", None])
def test_a_copy_that_is_lost_or_damaged_is_made_again(house: House, left: bytes | None):
    """By a start of `reload`, and by a reload that changes nothing."""
    for heal in (lambda: house.transaction.converge(everybody=True), house.transaction.reload):
        house.paths.last_good.unlink(missing_ok=True)
        if left is not None:
            house.paths.last_good.write_bytes(left)
        heal()
        assert snapshots.read(house.paths.last_good) == house.transaction.accepted


def test_a_copy_that_cannot_be_made_again_is_told(house: House):
    """As a warning of a reload that changes nothing, and in the log of a start."""
    house.paths.state.rmdir()
    answer = house.transaction.reload()
    assert answer.values["unchanged"] is True
    assert "last-good" in str(answer.values["warnings"])
    house.transaction.converge(everybody=True)
    assert "last-good" in str(house.log.calls[-1])


def test_what_stands_in_the_place_of_the_note_is_no_trouble(house: House):
    """A directory where the note of a degraded start would be is set aside; the change is made."""
    degraded_path(house.paths).mkdir()
    house.write(weight=2)
    assert house.transaction.reload().ok
    assert (house.api.obeys, house.accepted) == (2, 2)
    assert not degraded_path(house.paths).exists()


@pytest.mark.parametrize("name", ["accepted", "last_good"])
def test_a_file_that_was_damaged_is_set_aside_said_once_and_written_again(house: House, name: str):
    """What programs start with is put right by the next look, and what was damaged is there to be seen."""
    path: Path = getattr(house.paths, name)
    house.transaction.converge(everybody=False)
    path.write_bytes(b"\xff")
    for _ in range(3):
        house.transaction.converge(everybody=False)
    assert snapshots.read(path) == house.transaction.accepted
    said = [call.kwargs for call in house.log.calls if call.kwargs["event"] == "state-damaged"]
    assert [each["aside"] for each in said] == [f"{path}.damaged"]
    assert Path(f"{path}.damaged").read_bytes() == b"\xff"


def test_a_good_file_ends_the_degraded_state(house: House):
    """The note of a start from the last-good copy goes with the first good file, changed or not."""
    note = Degraded(since=1.0, problems=(AnswerProblem(message="broken"),))
    write_degraded(house.paths, note)
    house.write(weight=-1)
    house.transaction.reload()
    assert read_degraded(house.paths) == note
    house.write(weight=1)
    assert house.transaction.reload().ok
    assert read_degraded(house.paths) is None


def test_the_digest_is_that_of_the_accepted_file(house: House):
    """It is not known before the file is read; a file that is refused has no part in it."""
    assert house.transaction.digest is None
    house.write(weight=2)
    wanted = hashlib.sha256(house.paths.config.read_bytes()).hexdigest()
    assert house.transaction.reload().ok
    assert house.transaction.digest == wanted
    house.paths.config.write_text("pools: 7\n")
    assert not house.transaction.reload().ok
    assert house.transaction.digest == wanted


def test_the_digest_of_a_file_that_is_as_accepted_is_known_without_a_reload(house: House):
    """The watch has read it, twice without a change."""
    assert house.transaction.unasked() is None
    assert house.transaction.unasked() is None
    assert house.transaction.digest == hashlib.sha256(house.paths.config.read_bytes()).hexdigest()


@pytest.fixture
def judgements(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the numbers for which files are judged from now on."""
    made: list[int] = []

    def judging(paths: Paths, files: ReadFiles | None = None, *, number: int) -> Judged:
        made.append(number)
        return judge(paths, files, number=number)

    monkeypatch.setattr("appliance.net.sources.judging.judge", judging)
    return made


def test_what_was_judged_is_not_judged_again(
    house: House, judgements: list[int], monkeypatch: pytest.MonkeyPatch
):
    """Not if each file is as it was and was accepted; a refusal may have been the machine's."""
    house.write(weight=-1)
    first, second = house.transaction.reload(), house.transaction.reload()
    assert not first.ok
    assert first.errors == second.errors
    assert judgements == [2, 2]
    house.write(weight=2)
    assert [house.transaction.reload().values["changed"] for _ in range(2)] == [
        ["pools.masters.servers.master-0"],
        [],
    ]
    assert judgements == [2, 2, 2]
    monkeypatch.setenv(NODE_VARIABLE, "another")
    assert house.transaction.reload().ok
    assert judgements == [2, 2, 2, 3]


def test_what_programs_refused_is_tried_again_with_another_number(house: House, judgements: list[int]):
    """The files are as they were judged, and numbers are never used twice."""
    house.api.refuses = AnswerProblem(message="no")
    house.write(weight=2)
    assert not house.transaction.reload().ok
    house.api.refuses = None
    answer = house.transaction.reload()
    assert answer.ok
    assert answer.values["generation"] == house.accepted == 3
    assert judgements == [2]


def test_the_content_that_the_appliance_started_with_is_known(house: House, judgements: list[int]):
    """By the note of the start, if nothing of it has changed since."""
    boot.write(house.paths, boot.choose(house.paths))
    assert judgements == []  # a start judges for itself
    assert [house.transaction.unasked() for _ in range(3)] == [None] * 3
    assert house.transaction.digest == hashlib.sha256(house.paths.config.read_bytes()).hexdigest()
    assert judgements == []
    house.write(weight=2)
    assert house.transaction.unasked() is None
    assert house.transaction.unasked() is not None
    assert judgements == [1]


@pytest.mark.parametrize("change", ["number", "content", "degraded"])
def test_a_note_of_another_start_is_not_believed(house: House, judgements: list[int], change: str):
    """Neither of another snapshot, nor of other content, nor while the last-good copy is in use."""
    start = boot.choose(house.paths)
    assert start.note is not None
    if change == "degraded":
        write_degraded(house.paths, Degraded(since=1.0, problems=(AnswerProblem(message="broken"),)))
    changes = {"number": {"snapshot": 7}, "content": {"files": "other"}, "degraded": {}}
    start_note.write(house.paths, replace(start.note, **changes[change]))
    house.transaction.unasked()
    house.transaction.unasked()
    assert judgements == [1]
