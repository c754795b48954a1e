"""A process of the appliance's user, without capabilities, and what those that have some do for it: nothing.

It may be a script, a notify command, or a worker that was taken over.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.machines import nobody
from support.network.ports import free_port
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance

pytestmark = [pytest.mark.kernel, pytest.mark.needs("unshare", "mount", "nsenter", "setpriv", root=True)]

_UID = 19446
_USER = (
    "cp /etc/passwd /etc/group /mnt",
    f"echo appliance:x:{_UID}:{_UID}::/nonexistent:/usr/sbin/nologin >>/mnt/passwd",
    f"echo appliance:x:{_UID}: >>/mnt/group",
    "mount --bind /mnt/passwd /etc/passwd",
    "mount --bind /mnt/group /etc/group",
    "ip link set lo up",
)
_ADD = """
import sys
from pathlib import Path
from xmlrpc.client import Fault, ServerProxy
from supervisor.xmlrpc import SupervisorTransport
runtime, file, out = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
place = runtime / "supervisor.d"
place.mkdir(exist_ok=True)
command = f"{file} -m appliance.programs.reload"
(place / "x.conf").write_text(f"[program:x]\\ncommand={command}\\nautostart=true\\nautorestart=false\\n")
ours = ServerProxy("http://x", SupervisorTransport("", "", f"unix://{runtime}/supervisor.sock")).supervisor
for ask, *words in ((ours.reloadConfig,), (ours.addProcessGroup, "x"), (ours.restart,)):
    try:
        print(ask(*words))
    except Fault as fault:
        print(fault.faultString)
"""


_DAC_READ_SEARCH = 1 << 2  # of capabilities(7)


def _effective(process: Path) -> int:
    lines = (process / "status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("CapEff:")), 16)


class _Lesser:
    """An appliance of the user `appliance`, a file that is root's, and that user without a capability."""

    def __init__(self, appliance: Appliance) -> None:
        self.appliance = appliance
        self.root = appliance.paths.config.parent
        self.secret = self.root / "secret"
        self.secret.write_text("nobody-shall-see-this\n")
        self.secret.chmod(0o600)
        self.out = self.root / "out"
        self.out.mkdir()
        self.out.chmod(0o777)

    def run(self, *words: str | Path) -> "subprocess.CompletedProcess[str]":
        """Run a command as the appliance's user, where the appliance is, without any capability."""
        inside = f"/proc/{self.appliance.pid}/ns"
        return subprocess.run(
            [
                *("nsenter", f"--net={inside}/net", f"--mount={inside}/mnt"),
                *("setpriv", f"--reuid={_UID}", f"--regid={_UID}", "--clear-groups"),
                *("--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"),
                *map(str, words),
            ],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            cwd="/",
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        )

    def python(self, code: str, *words: str | Path) -> "subprocess.CompletedProcess[str]":
        """Run Python code likewise."""
        return self.run(sys.executable, "-c", code, *words)

    def pid_of(self, program: str) -> int:
        """Return the process id of a program."""
        pid: int = wait_until(lambda: self.appliance.program_pid(program) or 0, what=f"{program} runs")
        return pid


@pytest.fixture(scope="module")
def lesser() -> Iterator[_Lesser]:
    """Start an appliance as root on a machine that has the user `appliance`."""
    if not nobody.possible():
        pytest.skip("this machine makes no mount namespaces")
    appliance = Appliance(
        {
            "api": {"workers": 1, "frontends": {"a": {"bind": ["127.0.0.1:443"], "pool": "p"}}},
            "pools": {
                "p": {"check": {"type": "tcp"}, "servers": {"s": {"address": f"127.0.0.1:{free_port()}"}}}
            },
            "virtual_ips": {"v": {"addresses": ["192.0.2.7/32"], "interface": "lo", "router_id": 7}},
        }
    )
    appliance.paths.config.parent.chmod(0o755)
    appliance.paths.config.chmod(0o600)
    made = _Lesser(appliance)
    appliance.start(through=("unshare", "--net", *nobody.reachable(*_USER)))
    try:
        yield made
    finally:
        appliance.__exit__(None)


@pytest.mark.promise("rights", "supervisord's socket")
@pytest.mark.promise("docs/security.md", "a lesser program has no greater one run a file of its choice")
def test_no_file_of_its_choice_runs_with_capabilities(lesser: _Lesser):
    """It writes what supervisord read once, and asks for it by the socket, which is its own user's."""
    file = lesser.out / "file"
    ran = lesser.out / "ran"
    file.write_text(f"#!/bin/sh\ncat /proc/self/status {lesser.secret} >{ran} 2>&1\n")
    file.chmod(0o755)
    before = lesser.pid_of("vrrp")
    done = lesser.python(_ADD, lesser.appliance.paths.runtime, file, ran)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:2] == ["UNKNOWN_METHOD"] * 2
    lesser.appliance.wait_for_restart("vrrp", before)
    wait_until(lesser.appliance.is_whole, what="it serves again")
    assert not ran.exists(), ran.read_text()


@pytest.mark.promise("rights", "`appliance upgrade`, SIGUSR2")
def test_no_release_of_its_choice_takes_over(lesser: _Lesser):
    """Who has capabilities next is root's choice."""
    release = lesser.out / "release"
    release.write_text(f"#!/bin/sh\nid >{lesser.out}/upgraded\n")
    release.chmod(0o755)
    code = (
        "import sys; from pathlib import Path;"
        "from appliance.supervisor.succession.upgrade_request import ask;"
        "print(ask(Path(sys.argv[1]), [sys.argv[2]], timeout=20))"
    )
    done = lesser.python(code, lesser.appliance.paths.succession_socket, release)
    assert "only root may choose what has them next" in done.stdout, done.stderr
    assert not (lesser.out / "upgraded").exists()


@pytest.mark.promise("rights", "the memory of a program with capabilities")
@pytest.mark.parametrize("program", ["vrrp", "reload", "proxy-api"])
def test_no_memory_of_a_greater_program_is_open_to_it(lesser: _Lesser, program: str):
    """The kernel asks for the capabilities of who is looked into (ptrace(2)), by /proc too."""
    for file, mode in (("mem", "r+b"), ("environ", "rb"), ("fd/0", "rb")):
        done = lesser.python(
            "import sys; open(sys.argv[1], sys.argv[2])", f"/proc/{lesser.pid_of(program)}/{file}", mode
        )
        assert "PermissionError" in done.stderr, file


@pytest.mark.promise("rights", "the files in the runtime and state directories")
def test_reload_reads_no_file_of_its_choice(lesser: _Lesser):
    """The accepted configuration is this user's: it names a webhook whose token is root's file."""
    paths = lesser.appliance.paths
    accepted = json.loads(paths.accepted.read_text())
    target = {"name": "x", "severity": "info", "timeout": 5.0, "webhook": "http://127.0.0.1:9/"}
    accepted["notify"] = [{**target, "token_file": str(lesser.secret)}]
    code = "import sys; from pathlib import Path; Path(sys.argv[1]).write_text(sys.argv[2])"
    assert lesser.python(code, paths.accepted, json.dumps(accepted)).returncode == 0
    old = lesser.pid_of("reload")
    assert lesser.run("kill", "-9", str(old)).returncode == 0
    lesser.appliance.wait_for_restart("reload", old)
    failed = lesser.appliance.wait_for_event("notify-failed", timeout=60.0)
    assert "Permission denied" in str(failed)
    for task in Path(f"/proc/{lesser.pid_of('reload')}/task").iterdir():
        assert not _effective(task) & _DAC_READ_SEARCH
    lesser.appliance.paths.config.write_text(paths.config.read_text() + "\n")
    assert (
        lesser.appliance.reload()["ok"] is True
    )  # and the operator's file, root's alone, is read all the same
