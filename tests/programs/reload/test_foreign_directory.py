"""Root in somebody else's directory: nothing of what lies there is imported, by any program."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.network.ports import free_port
from support.peers.backend import Backend
from support.processes.processes import command_line
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance

from appliance.net.process.python import NO_USER_SITE, SAFE_PATH

pytestmark = pytest.mark.programs

_HOSTILE = """\
import os, sys
with open({log!r}, "a") as file:
    file.write(__name__ + " in " + " ".join(sys.orig_argv) + "\\n")
raise ImportError("this is not the module that you are looking for")
"""
_NAMES = ("json", "gevent", "structlog", "msgspec", "supervisor", "encodings", "ctypes", "struct", "pyroute2")


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go to a directory with modules of familiar names, and give the file that they write to."""
    log = tmp_path / "imported"
    code = _HOSTILE.format(log=str(log))
    for name in _NAMES:
        (tmp_path / f"{name}.py").write_text(code)
    for package in ("appliance", "appliance/programs"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    return log


def _config(server: int) -> dict[str, object]:
    track = {"script": "/bin/true", "interval": "1s"}
    return {
        "api": {"workers": 1, "frontends": {"a": {"bind": [f"127.0.0.1:{free_port()}"], "pool": "p"}}},
        "ingress": {"workers": 1, "frontends": {"b": {"bind": [f"127.0.0.1:{free_port()}"], "pool": "p"}}},
        "pools": {"p": {"check": {"type": "tcp"}, "servers": {"s": {"address": f"127.0.0.1:{server}"}}}},
        "stats": {"bind": f"127.0.0.1:{free_port()}"},
        "virtual_ips": {
            "v": {"addresses": ["192.0.2.7/32"], "interface": "lo", "router_id": 7, "track": {"t": track}}
        },
    }


def _modules(appliance: Appliance) -> set[str]:
    lines = [command_line(pid).split() for pid in appliance.processes()]
    return {words[words.index("-m") + 1] for words in lines if "-m" in words}


def test_no_module_of_the_working_directory_is_imported(hostile: Path):
    """Every program starts in a directory with modules of others, and none of them is looked at."""
    wanted = {
        f"appliance.programs.{name}"
        for name in ("supervisor", "reload", "health", "proxy", "worker", "vrrp", "tracker", "stats")
    }
    with Backend("one") as backend, Appliance(_config(backend.port)) as appliance:
        wait_until(lambda: wanted <= _modules(appliance), what="every program runs")
        assert appliance.reload()["ok"] is True
        inside = [Path(f"/proc/{pid}/cwd").resolve() for pid in appliance.processes()]
        assert set(inside) == {Path.cwd()}
    assert not hostile.exists(), hostile.read_text()


@pytest.mark.promise("rights", "the user's own modules, `~/.local`")
def test_no_module_of_the_user_is_imported(tmp_path: Path):
    """What lies there is run by every Python of this user; not by a program of ours, nor by a release."""
    home, ran = tmp_path / "home", tmp_path / "ran"
    environment = {**os.environ, "HOME": str(home)}
    python = sys._base_executable  # type: ignore[attr-defined]  # one without a virtual environment, which has none
    asked = [python, "-c", "import site; print(site.getusersitepackages())"]
    found = subprocess.run(asked, env=environment, capture_output=True, text=True, check=True).stdout.strip()
    Path(found).mkdir(parents=True)
    (Path(found) / "x.pth").write_text(f"import pathlib; pathlib.Path({str(ran)!r}).touch()\n")
    for words in ([SAFE_PATH], []):
        given = environment if words else {**environment, NO_USER_SITE: "1"}
        subprocess.run([python, *words, "-c", "pass"], env=given, check=True)
        assert not ran.exists()
    subprocess.run([python, "-c", "pass"], env=environment, check=True)
    assert ran.exists()


@pytest.mark.slow("a whole appliance for each situation")
def test_the_demo_imports_no_module_of_the_working_directory(hostile: Path):
    """Nor do the demo, its appliance, and its servers."""
    from support.supervisor.appliance import _COMMAND  # noqa: PLC0415  # where the command of this environment is

    process = subprocess.Popen(
        [_COMMAND, "demo", "--port-offset", "21000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "COLUMNS": "200"},
    )
    try:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        seen = "".join(line for line in _until(lines, "masters/master-0"))
        assert "master-0" in seen
    finally:
        process.terminate()
        process.communicate(timeout=60)
    assert not hostile.exists(), hostile.read_text()


def _until(lines: Iterator[str], word: str) -> Iterator[str]:
    for line in lines:
        yield line
        if word in line:
            return
