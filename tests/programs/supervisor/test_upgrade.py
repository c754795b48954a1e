"""`appliance upgrade` and SIGUSR2: the supervisord that runs starts the release that takes over from it."""

import contextlib
import json
import signal
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest
from support.network.ports import free_port
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance
from support.supervisor.loaded_site import Site, loaded_site
from support.supervisor.release import DIES, NotOurChild, Release

from appliance.model.paths import Paths

pytestmark = pytest.mark.programs

_UCRED = struct.Struct("=iII")  # process, user, group: what a receiver is told of the sender (unix(7))


@pytest.fixture
def site() -> Iterator[Site]:
    """Run the appliance with its load."""
    with loaded_site() as made:
        yield made


@pytest.mark.slow("installs two releases under load")
@pytest.mark.promise("docs/operating.md", "`upgrade` ends nothing")
def test_an_upgrade_and_the_way_back(site: Site, tmp_path: Path):
    """Each by the command of the release that is to be in charge; it says what became of it."""
    made = site.appliance
    newer, former = Release(tmp_path / "newer", "9.9.9"), Release(tmp_path / "former", "0.0.9")
    done = newer.command("upgrade", paths=made.paths)
    assert done.returncode == 0, done.stderr
    pid = int(made.paths.runtime.joinpath("supervisord.pid").read_text())
    assert done.stdout == f"Version 9.9.9 is in charge, with everything that was open: process {pid}.\n"
    site.upgraded_to(pid)
    site.wait_for_one_generation()
    site.wait_for_traffic()
    back = json.loads(former.command("upgrade", "--json", paths=made.paths).stdout)
    assert (back["ok"], back["version"]) == (True, "0.0.9")
    site.upgraded_to(back["pid"])
    site.wait_for_one_generation()
    site.wait_for_traffic()
    assert made.status()["version"] == "0.0.9"
    site.wait_for_own_programs()


@pytest.mark.slow("several starts of the whole appliance")
def test_a_signal(site: Site):
    """SIGUSR2 has the same command started again: what is installed there by now."""
    made, former = site.appliance, site.appliance.pid
    made.signal(signal.SIGUSR2)
    told = made.wait_for_event("appliance-taken-over", timeout=90.0)
    assert told["pid"] == former
    site.upgraded_to(int(made.paths.runtime.joinpath("supervisord.pid").read_text()))
    site.wait_for_own_programs()
    site.wait_for_one_generation()
    site.wait_for_traffic()


@pytest.mark.slow("several starts of the whole appliance")
def test_a_release_that_fails(site: Site, tmp_path: Path):
    """Before it asks, or after that: the command ends with 1 and the reason, the one that ran goes on."""
    made, before = site.appliance, site.programs()
    broken = Release(tmp_path / "broken", "9.9.9", changes={"programs/health.py": "import no_such_library\n"})
    done = broken.command("upgrade", paths=made.paths)
    assert done.returncode == 1
    assert "No module named 'no_such_library'" in done.stderr
    assert site.programs() == before
    assert "a release could not take over" in made.command("status", check=False).stdout
    dies = Release(tmp_path / "dies", "9.9.9", changes={"programs/worker.py": DIES})
    said = json.loads(dies.command("upgrade", "--json", paths=made.paths).stdout)
    assert said["ok"] is False
    assert said["errors"]
    site.wait_for_own_programs()
    site.wait_for_one_generation()
    site.wait_for_traffic()


@pytest.mark.slow("several starts of the whole appliance")
def test_a_configuration_that_is_refused(site: Site, tmp_path: Path):
    """The command says what is wrong with it, and the one that runs has not been asked to stand by."""
    made, before = site.appliance, site.programs()
    made.paths.config.write_text("api: 1\n")
    done = Release(tmp_path / "newer", "9.9.9").command("upgrade", paths=made.paths)
    assert done.returncode == 1
    assert f"{made.paths.config}:1:6: api: must be a mapping" in done.stderr
    assert not made.events("standing-by")
    assert site.programs() == before
    site.wait_for_traffic()


@pytest.mark.slow("several starts of the whole appliance")
def test_nobody_to_upgrade(tmp_path: Path):
    """Where no appliance runs, the next step is to start one."""
    newer = Release(tmp_path / "newer", "9.9.9")
    paths = Paths(runtime=tmp_path / "run", state=tmp_path / "state")
    done = newer.command("upgrade", paths=paths)
    assert (done.returncode, "Next: `systemctl start appliance`" in done.stderr) == (1, True)


@pytest.mark.slow("several starts of the whole appliance")
def test_what_systemd_hears(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The former one names its successor, and is silent then; the new one has said nothing before."""
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
    monkeypatch.setenv("WATCHDOG_USEC", "600000")
    config = {"api": {"frontends": {"a": {"bind": [f"127.0.0.1:{free_port()}"], "respond": "/alive"}}}}
    with Receiver(tmp_path / "notify") as receiver, Appliance(config) as made:
        former = made.pid
        done = json.loads(made.command("upgrade", "--json").stdout)
        made.process = NotOurChild(done["pid"])
        wait_until(lambda: (done["pid"], "READY=1") in receiver.told, what="it is ready", timeout=60.0)
        told = list(receiver.told)
        at = told.index((former, f"MAINPID={done['pid']}"))
        assert (former, "READY=1") in told[:at]
        assert {pid for pid, _ in told[:at]} == {former}
        assert {pid for pid, _ in told[at + 1 :]} == {done["pid"]}
        wait_until(lambda: receiver.told[-1] == (done["pid"], "WATCHDOG=1"), what="the watchdog is fed")


class Receiver:
    """Takes notifications as systemd does; `told` is each with the process that has sent it."""

    def __init__(self, path: Path) -> None:
        self.told: list[tuple[int, str]] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._socket.bind(str(path))
        self._socket.settimeout(0.1)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._receive)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._socket.close()

    def _receive(self) -> None:
        while not self._over.is_set():
            with contextlib.suppress(TimeoutError):
                text, ((_, _, sender),), _, _ = self._socket.recvmsg(4096, socket.CMSG_SPACE(_UCRED.size))
                self.told.append((_UCRED.unpack(sender)[0], text.decode()))
