"""Commands run as who they should, end when they should, and say why they failed."""

import gc
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import gevent
import pytest
from support.machines import nobody
from support.processes.greenlets import until
from support.processes.processes import alive
from support.processes.waiting import wait_until

from appliance.net.scripts.account import Account, UnknownUserError, account
from appliance.net.scripts.command import Command, Ending

pytestmark = pytest.mark.programs

ENOUGH = 10.0
SOON = 0.2
OPEN = Path("/proc/self/fd")


def command(*words: str, user: Account | None = None, sweep: bool = True) -> Command:
    """Start a command."""
    return Command(words, user or account(None, timeout=ENOUGH), sweep=sweep)


def shell(script: str, *, user: Account | None = None, timeout: float = ENOUGH) -> Ending:
    """Return how a shell's script ended."""
    return command("sh", "-c", script, user=user).wait(timeout)


def number(path: Path) -> int:
    """Return the process id that a script has written to a file, once it has."""
    return int(until(lambda: path.exists() and path.read_text().strip(), what=f"a number in {path}"))


def test_status_0_is_a_pass():
    """A command that ends well passes, whatever it says."""
    assert shell("echo hello") == Ending(passed=True, detail="exited 0")


@pytest.mark.parametrize(
    ("script", "detail"),
    [
        ("exit 3", "exited 3"),
        ("echo; echo ' no  such'; printf '\\tpod\\033' >&2; exit 1", "exited 1: no such; pod\ufffd"),
        ("kill -SEGV $$", "killed by SIGSEGV"),
        ("kill -40 $$", "killed by signal 40"),
        ("printf '%300s' | tr ' ' x; exit 1", f"exited 1: ...{'x' * 200}"),
    ],
)
def test_a_failure_says_why(script: str, detail: str):
    """Status or signal, and the end of what was said, as one printable line."""
    assert shell(script) == Ending(passed=False, detail=detail)


def test_a_command_that_is_not_there_is_named():
    """The operator sees which file is missing, and it is no exit status of anything."""
    missing = command("/no/such/check", "now").wait(ENOUGH)
    assert missing == Ending(passed=False, detail="cannot be run: /no/such/check: No such file or directory")


def test_an_interpreter_that_is_not_there_is_not_called_a_missing_script(tmp_path: Path):
    """The script is there: it is its first line that is wrong."""
    script = tmp_path / "check"
    script.write_text("#!/no/such/shell\n")
    script.chmod(0o755)
    assert (
        command(str(script)).wait(ENOUGH).detail.endswith("the interpreter in its first line does not exist")
    )


def test_there_is_no_shell():
    """Words reach the command as they are."""
    ending = command("sh", "-c", 'echo "$1"; exit 1', "sh", "$HOME; `id` *").wait(ENOUGH)
    assert ending.detail == "exited 1: $HOME; `id` *"


def test_the_environment_is_minimal(monkeypatch: pytest.MonkeyPatch):
    """Nothing of ours gets into it, and the way to the usual programs is there."""
    monkeypatch.setenv("APPLIANCE_SECRET", "x")
    detail = command("env").wait(ENOUGH)
    assert detail.passed
    ending = shell("env | sed 's/=.*//' | sort | tr '\\n' ' '; pwd; umask; exit 1")
    assert ending.detail == "exited 1: HOME LOGNAME PATH PWD USER /; 0022"


def test_no_descriptor_is_handed_down():
    """Standard input is empty, and besides the three there is only what the listing itself opens."""
    with Path("/dev/null").open() as file:
        os.set_inheritable(file.fileno(), True)  # noqa: FBT003  # the standard library's signature
        ending = shell("cat; ls /proc/self/fd | wc -l; exit 1")
    assert ending.detail == "exited 1: 4"


def test_signals_are_as_a_program_expects_them():
    """None is ignored or blocked, whatever this process does with them.

    But 32 and 33, which are glibc's own: what an ancestor did with them is inherited, and cannot be changed.
    """
    ours = sum(1 << (number - 1) for number in signal.valid_signals())
    before = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    try:
        ending = shell("grep -E 'Sig(Blk|Ign)' /proc/$$/status | cut -f 2; exit 1")
    finally:
        signal.signal(signal.SIGUSR1, before)
    masks = [int(each, 16) for each in ending.detail.removeprefix("exited 1: ").split("; ")]
    assert [mask & ours for mask in masks] == [0, 0]


def test_it_leads_a_session_of_its_own():
    """A signal to our group does not reach it."""
    ending = shell("cut -d ' ' -f 1,5,6 /proc/$$/stat; exit 1").detail.removeprefix("exited 1: ")
    assert len(set(ending.split())) == 1


@pytest.mark.needs(root=True)
def test_it_runs_as_its_user_with_all_groups():
    """Real, effective and saved ids are the user's, and so are the supplementary groups."""
    user = Account(name="nobody", uid=nobody.UID, gid=nobody.UID, groups=(nobody.UID, 4321), home="/none")
    ending = shell("grep -E '^(Uid|Gid|Groups)' /proc/$$/status; echo $HOME $USER; exit 1", user=user)
    ids = " ".join([str(nobody.UID)] * 4)
    assert ending.detail == f"exited 1: Uid: {ids}; Gid: {ids}; Groups: 4321 {nobody.UID}; /none nobody"


@pytest.mark.needs("setpriv", root=True)
def test_without_the_right_to_change_the_user_it_says_so():
    """An appliance that does not run as root runs no command as anybody else, and not as itself instead."""
    if not nobody.possible():
        pytest.skip("no mount namespaces here")
    program = (
        "from appliance.net.scripts.command import Command\n"
        "from appliance.net.scripts.account import account\n"
        "print(Command(['true'], account('root', timeout=10), sweep=True).wait(10).detail)\n"
        "print(Command(['true'], account(None, timeout=10), sweep=True).wait(10).detail)"
    )
    words = nobody.command([sys.executable, "-c", program])
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [
        "cannot be run: true: not permitted to run as user root",
        "exited 0",
    ], done.stderr


def test_an_account_has_the_groups_that_the_system_says():
    """Numbers and groups are those of `id`."""
    said = subprocess.run(["id", "-G", "nobody"], capture_output=True, text=True, check=True).stdout
    found = account("nobody", timeout=ENOUGH)
    assert sorted(found.groups) == sorted(map(int, said.split()))
    assert found.uid == nobody.UID


def test_nobody_of_that_name_is_an_error():
    """An unknown user is named."""
    with pytest.raises(UnknownUserError, match="no user 'no-such-user'"):
        account("no-such-user", timeout=ENOUGH)


def test_a_name_that_none_can_have_is_an_error():
    """It is told like any other unknown user."""
    with pytest.raises(UnknownUserError, match="null byte"):
        account("no\0body", timeout=ENOUGH)


def test_one_that_takes_too_long_is_told_to_end():
    """It gets TERM, and what it said so far is told."""
    late = command("sh", "-c", "echo waiting; exec sleep 60")
    ending = late.wait(SOON)
    assert ending == Ending(passed=False, detail="no end within 0.2 s: waiting", late=True)
    assert not alive(late.pid)


def test_an_end_that_we_were_too_late_to_see_is_an_end():
    """A machine that was busy, or stopped, blames no command for that."""
    quick = command("true")
    waiting = gevent.spawn(quick.wait, SOON)
    gevent.sleep(0)
    wait_until(lambda: not alive(quick.pid), what="it has ended")
    time.sleep(2 * SOON)  # no greenlet runs meanwhile
    assert waiting.get() == Ending(passed=True, detail="exited 0")


def test_the_whole_group_of_a_late_one_is_killed(tmp_path: Path):
    """Neither a child that ignores TERM outlives the timeout, nor the command itself."""
    child = tmp_path / "child"
    late = command("sh", "-c", f"trap '' TERM; sleep 60 & echo $! > {child}; wait; sleep 60")
    pid = number(child)
    late.wait(SOON)
    assert late.ended.wait(ENOUGH)
    wait_until(lambda: not alive(pid), what="the child is gone")


@pytest.mark.parametrize("sweep", [True, False])
def test_what_is_left_in_the_background_is_swept_or_not(*, sweep: bool, tmp_path: Path):
    """A check leaves nothing behind, a notify command may."""
    child = tmp_path / "child"
    script = f"sleep 60 & echo $! > {child}"
    assert command("sh", "-c", script, sweep=sweep).wait(ENOUGH).passed
    pid = number(child)
    if sweep:
        wait_until(lambda: not alive(pid), what="the child is gone")
        return
    assert alive(pid)
    os.kill(pid, signal.SIGKILL)


def test_one_that_says_too_much_is_no_trouble():
    """Only the end is kept of what has no end."""
    assert command("yes").wait(SOON).detail.endswith("y; y")


def test_it_dies_with_the_process_that_started_it(tmp_path: Path):
    """Even a KILL leaves no command running, also one of another user."""
    pid_file = tmp_path / "pid"
    user = "nobody" if os.geteuid() == 0 else None
    program = (
        "import sys\n"
        "from appliance.net.scripts.command import Command\n"
        "from appliance.net.scripts.account import account\n"
        f"who = account({user!r}, timeout=10)\n"
        f"c = Command(['sleep', '60'], who, sweep=True); open({str(pid_file)!r}, 'w').write(str(c.pid))\n"
        "c.wait(60)"
    )
    with subprocess.Popen([sys.executable, "-c", program]) as process:
        pid = number(pid_file)
        wait_until(lambda: Path(f"/proc/{pid}/comm").read_text() == "sleep\n", what="it sleeps")
        process.kill()
    wait_until(lambda: not alive(pid), what="it is gone")


def test_no_descriptor_is_lost():
    """Fifty runs later as many are open as before."""
    command("true").wait(ENOUGH)
    gc.collect()  # what other tests have left
    before = len(list(OPEN.iterdir()))
    for _ in range(50):
        assert command("true").wait(ENOUGH).passed
    assert len(list(OPEN.iterdir())) <= before
