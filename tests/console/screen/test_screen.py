"""The screen of a virtual machine says where it is, how it is, and what to do about what is wrong."""

import os
import socket
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from support.machines.guest import guest
from support.processes.processes import running
from support.processes.waiting import wait_until
from support.values.snapshots import snapshot, virtual_router

from appliance.console.screen import screen
from appliance.console.screen.screen import ScreenFacts, UnitState, screen_text
from appliance.console.status.status import current_status
from appliance.core.status.assessment import assess
from appliance.core.status.observations import Observations
from appliance.core.status.status import DegradedStart, Status
from appliance.guest.host_keys import HostKey
from appliance.model.guest.report import GuestProblem, GuestReport, Origin
from appliance.model.paths import Paths
from appliance.net.files.guest_report_file import publish
from appliance.wire.lines.vrrp_status import RouterStatus, VrrpStatus

pytestmark = pytest.mark.sockets

GOOD = GuestReport(origin=Origin.VMWARE, applied_at=1.0, login_keys=1)
BAD = replace(GOOD, problems=(GuestProblem(key="dns", message="must be an address"),))


def status(*, guest: GuestReport | None = GOOD, configured: bool = True, **changes: object) -> Status:
    """Return the status of an appliance that has one virtual IP, and holds it."""
    router = replace(virtual_router("api"), addresses=("10.0.0.200/24",))
    vrrp = VrrpStatus(routers=(RouterStatus(name="api", state="active"),))
    found = Observations(
        snapshot=snapshot(number=1, groups=[], pools=[], virtual_routers=[router]) if configured else "none",
        supervised=() if configured else "it is not there",
        answers={"vrrp": vrrp} if configured else {},
        health=None,
        workers=(),
        failures={},
        degraded=None,
        guest=guest,
    )
    return replace(assess(found, 1.0), **changes)


def view(shown: Status, *, configured: bool = True) -> ScreenFacts:
    """Return what is seen on a machine with two addresses, one of them virtual."""
    return ScreenFacts(
        host="lb-1",
        config=Path("/etc/appliance/appliance.yaml"),
        configured=configured,
        addresses=(("ens192", ("10.0.0.11/24", "10.0.0.200/24", "fe80::1/64")),),
        host_keys=(
            HostKey(kind="ECDSA", fingerprint="SHA256:aaa"),
            HostKey(kind="ED25519", fingerprint="SHA256:bbb"),
        ),
        status=shown,
        unit=UnitState.RUNNING if shown.supervisor is None else UnitState.STOPPED,
    )


def text(shown: Status, *, configured: bool = True) -> str:
    """Return the screen with its white space made single."""
    return " ".join(screen_text(view(shown, configured=configured)).split())


def test_where_it_is_and_how():
    """Name, addresses with what is virtual among them, state, and how to log in, by an address of its own."""
    shown = text(status(ok=True, problems=()))
    assert "on lb-1" in shown
    assert "10.0.0.200/24 (ens192, virtual IP api)" in shown
    assert "State: serving" in shown
    assert "ssh admin@10.0.0.11 Host keys: SHA256:aaa (ECDSA) SHA256:bbb (ED25519)" in shown
    assert "!" not in shown


def test_the_network_for_management_is_the_one_to_log_in_by():
    """Ssh answers there only."""
    shown = status(guest=replace(GOOD, management="ens224"))
    addresses = (("ens192", ("10.0.0.11/24",)), ("ens224", ("192.168.9.11/24",)))
    assert "ssh admin@192.168.9.11\n" in screen_text(replace(view(shown), addresses=addresses))


def test_virtual_ip_held_elsewhere_is_not_marked():
    """An address is virtual here only while it is held here."""
    lost = replace(status().virtual_ips[0], active=False)
    assert "virtual IP" not in text(status(ok=True, problems=(), virtual_ips=(lost,)))


@pytest.mark.parametrize(
    ("shown", "state", "hint"),
    [
        (status(), "running, with problems", "is gone"),
        (status(supervisor="gone"), "not running", "journalctl -u appliance"),
        (
            status(degraded=DegradedStart(since=1.0, errors=())),
            "last good configuration",
            "sudo appliance check",
        ),
        (status(guest=BAD), "running, with problems", "DNS servers (dns): must be an address"),
        (status(guest=BAD), "running", "edit the vApp options"),
        (status(guest=replace(GOOD, login_keys=0)), "running", "no one can log in"),
    ],
)
def test_what_is_wrong_is_told_with_what_to_do(shown: Status, state: str, hint: str):
    """Each state in its own words."""
    assert state in text(shown)
    assert hint in text(shown)


def test_while_it_starts_only_wrong_properties_are_shown():
    """That no program answers yet is no problem; once systemd has started it, it is one."""
    shown = view(status(guest=BAD, supervisor="gone", ok=False))
    starting = screen_text(replace(shown, unit=UnitState.STARTING))
    assert "State:     starting\n" in starting
    assert "DNS servers (dns)" in starting
    assert "gone" not in starting
    assert "journalctl" not in starting
    running = screen_text(replace(shown, unit=UnitState.RUNNING))
    assert "State:     running, with problems\n" in running
    assert "gone" in running


@pytest.mark.programs
@pytest.mark.parametrize(
    ("shown", "state"),
    [
        ("Job=104\nNRestarts=0\nActiveState=activating", UnitState.STARTING),
        ("Job=104\nNRestarts=0\nActiveState=inactive", UnitState.STARTING),  # waits for another unit
        ("Job=\nNRestarts=0\nActiveState=inactive", UnitState.STOPPED),
        ("NRestarts=3\nActiveState=activating", UnitState.STOPPED),  # waits to start again
        ("Job=312\nNRestarts=3\nActiveState=activating", UnitState.STOPPED),
        ("Job=312\nNRestarts=0\nActiveState=deactivating", UnitState.STOPPED),
        ("NRestarts=0\nActiveState=active", UnitState.RUNNING),
        ("Job=312\nNRestarts=0\nActiveState=reloading", UnitState.RUNNING),
        ("", UnitState.STOPPED),  # systemd did not answer
    ],
)
def test_the_state_of_the_unit_is_what_systemd_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shown: str, state: UnitState
):
    """A first start is told from one that systemd repeats."""
    guest(tmp_path).program("systemctl", f"test $2 = appliance.service && printf '%s\\n' '{shown}'")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    assert screen.unit_state() is state


@pytest.mark.programs
def test_without_systemd_what_does_not_answer_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """As in a container."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert screen.unit_state() is UnitState.STOPPED


def test_a_machine_without_configuration_says_how_to_get_one():
    """And not that programs do not run, which none should."""
    shown = text(status(configured=False), configured=False)
    assert "State: not configured" in shown
    assert "vApp options" in shown
    assert "supervisord" not in shown


def test_a_machine_without_configuration_says_what_is_wrong_with_its_properties():
    """That is why it has none."""
    shown = text(status(configured=False, guest=BAD), configured=False)
    assert "DNS servers (dns): must be an address" in shown


def test_wrong_properties_come_before_what_follows_from_them():
    """However many servers are down."""
    assert status(guest=BAD).problems[0].startswith("property DNS servers")


def test_many_problems_end_somewhere():
    """A console has 25 lines."""
    many = tuple(f"problem {number}" for number in range(30))
    assert "and 22 more: `sudo appliance status`" in text(status(problems=many))


def test_nothing_in_it_is_an_order_for_agetty_or_the_terminal():
    """Backslashes are doubled, and control characters shown as such."""
    shown = text(status(problems=("a \\n \x1b[2J b",)))
    assert "a \\\\n ?[2J b" in shown


def test_without_addresses_that_is_said():
    """The network may not be there yet."""
    shown = screen_text(replace(view(status()), addresses=()))
    assert "none yet" in shown
    assert "ssh admin@lb-1" in shown


def test_a_look_at_this_machine(tmp_path: Path):
    """Name and addresses are the kernel's."""
    seen = screen.current_facts(Paths(config=tmp_path / "c", runtime=tmp_path, state=tmp_path))
    assert seen.host == socket.gethostname()
    assert not seen.configured
    assert all(name != "lo" for name, _ in seen.addresses)


@pytest.mark.programs
def test_it_is_kept_as_things_are(tmp_path: Path):
    """The file appears, follows what becomes of the properties, and agetty is told each time and no other."""
    machine = guest(tmp_path)
    told, issue = tmp_path / "told", tmp_path / "issue.d/appliance.issue"
    machine.program("agetty", f'echo "$*" >>{told}')
    paths = Paths(config=tmp_path / "c.yaml", runtime=tmp_path / "run", state=tmp_path / "state")
    environment = {**os.environ, **paths.environment(), "PATH": f"{machine.programs}:{os.environ['PATH']}"}
    words = [sys.executable, "-m", "appliance.console", "guest", "console", "--issue", str(issue)]
    with running(words, log=tmp_path / "log", environment=environment):
        wait_until(issue.exists, what="the screen is there")
        assert "not configured" in issue.read_text()
        publish(paths, BAD)
        wait_until(lambda: "DNS servers" in issue.read_text(), what="the screen has the problem")
        wait_until(lambda: len(told.read_text().splitlines()) == 2, what="agetty knows of both")
    assert set(told.read_text().splitlines()) == {"--reload"}
    assert [each.name for each in issue.parent.iterdir()] == ["appliance.issue"]


def test_the_same_is_not_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A screen that flickers cannot be read; without agetty the file is written all the same."""
    monkeypatch.setenv("PATH", str(tmp_path))
    issue = tmp_path / "appliance.issue"
    screen.write_issue("text", issue)
    before = issue.stat().st_ino
    screen.write_issue("text", issue)
    assert issue.stat().st_ino == before
    assert current_status(Paths(runtime=tmp_path)).guest is None
