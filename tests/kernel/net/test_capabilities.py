"""`net.privileges.capabilities` and `drop_privileges`: who holds what after each step, in real processes."""

import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.kernel, pytest.mark.needs("setpriv", root=True)]

_NOBODY = pwd.getpwnam("nobody")
_SEEN = "import pathlib; print(pathlib.Path('/proc/self/status').read_text())"
_CARRY = "from appliance.net.privileges import capabilities; capabilities.carry()\n"
_KEEP = "from appliance.net.privileges import capabilities; capabilities.keep_from_children()\n"
_HAND_OVER = """
import os, sys
from appliance.net.privileges import capabilities
from appliance.net.process import python
if os.fork() == 0:
    capabilities.grant(capabilities.used_by(python.command(sys.argv[1])))
    os.execv("/bin/cat", ["cat", "/proc/self/status"])
os.wait()
"""
_BECOME = """
import sys
from pathlib import Path
from appliance.net.privileges import drop_privileges
try:
    drop_privileges.become(sys.argv[1], owned=[Path(sys.argv[2])])
except drop_privileges.CannotBecomeError as error:
    sys.exit(str(error))
"""
# Bits of capabilities(7).
_BIND, _ADMIN, _RAW = 1 << 10, 1 << 12, 1 << 13
_GIVEN = "-all,+net_bind_service,+net_admin,+net_raw"


def _run(
    program: str, *arguments: str, user: bool = True, capabilities: str = _GIVEN
) -> "subprocess.CompletedProcess[str]":
    """Run a program as nobody with these capabilities in all sets, or as root with these as the bound."""
    ambient = (f"--inh-caps={capabilities}", f"--ambient-caps={capabilities}") if user else ()
    who = (f"--reuid={_NOBODY.pw_uid}", f"--regid={_NOBODY.pw_gid}", "--clear-groups") if user else ()
    return subprocess.run(
        [
            *("setpriv", *who, *ambient, f"--bounding-set={capabilities}"),
            *(sys.executable, "-c", program, *arguments),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )


def _sets(done: "subprocess.CompletedProcess[str]") -> list[int]:
    """Return the effective user and the sets effective, permitted, inheritable and ambient."""
    assert done.returncode == 0, done.stderr
    status = dict(line.split(":", 1) for line in done.stdout.splitlines() if ":" in line)
    sets = (int(status[name], 16) for name in ("CapEff", "CapPrm", "CapInh", "CapAmb"))
    return [int(status["Uid"].split()[1]), *sets]


def test_carry():
    """What is carried is not in effect, and is there for those that are started."""
    given = _BIND | _ADMIN | _RAW
    assert _sets(_run(_CARRY + _SEEN)) == [_NOBODY.pw_uid, 0, given, given, given]


def test_keep_from_children():
    """What a program keeps is in effect, and no child of it inherits any."""
    given = _BIND | _ADMIN | _RAW
    assert _sets(_run(_KEEP + _SEEN)) == [_NOBODY.pw_uid, given, given, 0, 0]


@pytest.mark.promise("kernel", "capabilities")
@pytest.mark.parametrize(
    ("module", "share"),
    [
        ("appliance.programs.proxy", _BIND),
        ("appliance.programs.vrrp", _ADMIN | _RAW),
        ("appliance.programs.health", 0),
        ("somebody.elses", 0),
    ],
)
@pytest.mark.parametrize("carried", [_CARRY, ""])
def test_hand_over(module: str, share: int, carried: str):
    """A program that is started has what it uses of what there is, from one that carries or that uses it."""
    assert _sets(_run(carried + _HAND_OVER, module)) == [_NOBODY.pw_uid, share, share, share, share]


@pytest.mark.parametrize("program", [_CARRY, _KEEP])
def test_without_any(program: str):
    """An ordinary user without capabilities goes on without them."""
    assert _sets(_run(program + _SEEN, capabilities="-all")) == [_NOBODY.pw_uid, 0, 0, 0, 0]


def test_root_is_left_alone():
    """A child of root is root as before."""
    given = _BIND | _ADMIN | _RAW
    done = _run(_CARRY + _HAND_OVER, "appliance.programs.health", user=False)
    assert _sets(done)[:3] == [0, given, given]


def test_become(tmp_path: Path):
    """Root becomes the user for good, with what the programs use and nothing else, and owns its folders."""
    owned = tmp_path / "deep" / "run"
    tmp_path.chmod(0o755)
    given = "-all,+net_bind_service,+net_admin,+setuid,+setgid,+chown,+dac_override,+kill"
    done = _run(_BECOME + _SEEN, "nobody", str(owned), user=False, capabilities=given)
    share = _BIND | _ADMIN
    assert _sets(done) == [_NOBODY.pw_uid, share, share, share, share]
    assert owned.stat().st_uid == _NOBODY.pw_uid


def test_become_without_the_right(tmp_path: Path):
    """Without SETUID root does not go on as root."""
    done = _run(_BECOME + _SEEN, "nobody", str(tmp_path), user=False, capabilities="-all,+net_admin")
    assert done.returncode == 1
    assert "add the capabilities SETUID and SETGID" in done.stderr
    assert not done.stdout


def test_become_nobody_known(tmp_path: Path):
    """A user that there is not is named."""
    done = _run(_BECOME + _SEEN, "nobody-at-all", str(tmp_path), user=False)
    assert "no user 'nobody-at-all'" in done.stderr


def test_an_ordinary_user_becomes_nobody_else(tmp_path: Path):
    """Who is no root stays who it is, with what it has."""
    given = _BIND | _ADMIN | _RAW
    done = _run(_BECOME + _SEEN, "root", str(tmp_path))
    assert _sets(done) == [_NOBODY.pw_uid, given, given, given, given]
