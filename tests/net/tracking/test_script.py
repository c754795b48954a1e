"""Scripts are up by their exit status, one run at a time."""

from pathlib import Path

import gevent
import pytest
from support.processes.greenlets import until
from support.processes.processes import alive

from appliance.net.tracking.script import ScriptTrack
from appliance.net.tracking.track_check import LookResult

pytestmark = pytest.mark.programs

ENOUGH = 10.0
HINT = "; it names HAProxy, and `program` asks for our proxy"


def script(text: str, *, user: str | None = None, timeout: float = ENOUGH) -> ScriptTrack:
    """Return the track of a shell's script."""
    return ScriptTrack(("sh", "-c", text), user=user, timeout=timeout)


def test_the_exit_status_decides():
    """0 is up; anything else is down, with what the script said."""
    assert script("exit 0").look() == LookResult(up=True, detail="exited 0")
    assert script("echo no pod; exit 2").look() == LookResult(up=False, detail="exited 2: no pod")


def test_a_script_that_looks_for_haproxy_is_told():
    """Beside our own proxy it fails for ever, and status says what is meant."""
    assert script("exit 1 # HAProxy").look() == LookResult(up=False, detail=f"exited 1{HINT}")
    assert script("exit 0 # haproxy").look() == LookResult(up=True, detail="exited 0")


def test_a_script_whose_content_looks_for_haproxy_is_told(tmp_path: Path):
    """Whatever the file is called; what it only prints does not count, and a mended file is read again."""
    file = tmp_path / "check"
    file.write_text("#!/bin/sh\necho no haproxy; exit 1\n")
    file.chmod(0o755)
    track = ScriptTrack((str(file),), user=None, timeout=ENOUGH)
    assert track.look().detail == "exited 1: no haproxy"
    for text, detail in (("exit 0", "exited 0"), ("test -e /run/haproxy.pid || exit 2", f"exited 2{HINT}")):
        file.write_text(f"#!/bin/sh\n{text}\n")
        assert track.look().detail == detail
    file.write_text("#!/bin/sh\nexit 3\n" + "#" * 10_000)
    assert ScriptTrack((str(file),), user=None, timeout=ENOUGH).look().detail == "exited 3"


def test_a_missing_script_is_down_and_says_so():
    """The detail names the file."""
    seen = ScriptTrack(("/no/such/check",), user=None, timeout=ENOUGH).look()
    assert seen == LookResult(up=False, detail="cannot be run: /no/such/check: No such file or directory")


def test_an_unknown_user_prints_nothing(capfd: pytest.CaptureFixture[str]):
    """The detail says it; a traceback at every interval would say nothing more."""
    script("exit 0", user="no-such-user").look()
    assert capfd.readouterr().err == ""


def test_an_unknown_user_is_down_and_says_so():
    """Nothing is run as anybody else instead."""
    assert script("exit 0", user="no-such-user").look() == LookResult(
        up=False, detail="no user 'no-such-user'"
    )


@pytest.mark.needs(root=True)
def test_it_runs_as_its_user():
    """The script is not root when it should not be."""
    assert script("id -un; exit 1", user="nobody").look().detail == "exited 1: nobody"


def test_a_run_that_ends_late_does_not_overlap_with_the_next(tmp_path: Path):
    """The next run starts when the last one is gone, however stubborn."""
    runs = tmp_path / "runs"
    track = script(f"trap '' TERM; echo begin >> {runs}; sleep 60", timeout=0.2)
    for count in (1, 2):
        assert track.look() == LookResult(up=False, detail="no end within 0.2 s")
        assert runs.read_text().splitlines() == ["begin"] * count
        last = track._running
    track.close()
    assert last is not None
    assert last.ended.wait(ENOUGH)


def test_closing_kills_what_runs(tmp_path: Path):
    """A track that is removed takes its process and that one's children with it."""
    child = tmp_path / "child"
    track = script(f"sleep 60 & echo $! > {child}; wait")
    looking = gevent.spawn(track.look)
    pid = int(until(lambda: child.exists() and child.read_text().strip(), what="the child runs"))
    track.close()
    looking.join(ENOUGH)
    until(lambda: not alive(pid), what="the child is gone")
