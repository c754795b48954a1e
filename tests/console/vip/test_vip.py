"""`appliance vip` against a program that answers as vrrp does."""

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.processes.processes import running
from support.processes.waiting import wait_until
from support.values.shared_ips import with_shared
from support.values.snapshots import snapshot, virtual_router
from support.vrrp.vip_answers import answer, heard, part, router

from appliance.console.command import main
from appliance.model.paths import Paths
from appliance.model.snapshot.snapshot import encode

pytestmark = pytest.mark.programs

_TESTS = str(Path(__file__).parents[2])


@pytest.fixture
def paths(tmp_path_factory: pytest.TempPathFactory) -> Paths:
    """Give a runtime directory with a short name, and a snapshot with two virtual IPs in it."""
    root = tmp_path_factory.mktemp("v")
    made = Paths(config=root / "appliance.yaml", runtime=root, state=root)
    routers = [virtual_router("api", hand_over=0.5), virtual_router("ingress", hand_over=0.5)]
    made.accepted.write_bytes(encode(snapshot(number=3, groups=[], pools=[], virtual_routers=routers)))
    return made


def vip(paths: Paths, *arguments: str) -> Result:
    """Run the command."""
    return CliRunner().invoke(main, ["vip", *arguments], env={**paths.environment(), "COLUMNS": "160"})


@contextmanager
def answering(paths: Paths, said: dict[str, object], successor: str | None = None) -> Iterator[None]:
    """Have a program answer on vrrp's socket."""
    file = paths.runtime / "answer.json"
    file.write_text(json.dumps(said))
    arguments = [sys.executable, "-m", "support.vrrp.fake_vrrp", str(paths.control("vrrp")), str(file)]
    arguments += [successor] if successor else []
    with running(arguments, log=paths.runtime / "log", environment={**os.environ, "PYTHONPATH": _TESTS}):
        wait_until(paths.control("vrrp").exists, what="the program listens")
        yield


def test_status_shows_everything(paths: Paths):
    """State, priority as a sum, timers, what is tracked, who is heard and what happened."""
    backup = router("ingress", state="backup", heard=[heard("192.0.2.9")], yielded=True, sync_group="both")
    backup["uninformed_for"] = 42.0
    routes = ["10.1.0.0/16 via 192.0.2.9", "from 10.0.0.0/8 table 1 priority 5"]
    with answering(paths, answer(router(routes=routes), backup)):
        result = vip(paths, "status")
    shown = " ".join(result.stdout.split())
    assert result.exit_code == 0
    for text in (
        "api: active for 2h, 192.0.2.200/24",
        "id 51 on eth0, version 2",
        "priority 120 = 100 +20 serving",
        "routes 10.1.0.0/16 via 192.0.2.9; from 10.0.0.0/8 table 1 priority 5",
        "timers advert 1s, dead after 3.531s, skew 531.2ms, due in 500ms",
        "counters adverts sent 60, transitions 2, dropped checksum 3",
        "serving up 20 20",
        "192.0.2.2 silent 90 3h ago",
        "2h ago backup active active-down 192.0.2.2",
        "ingress: backup for 2h",
        "version 2, sync group both",
        "takes part again with `appliance vip reclaim ingress`",
        "192.0.2.9 active 90",
        "takes no address over until it knows which node has which connections, 42s at most",
    ):
        assert text in shown


def test_status_of_one(paths: Paths):
    """With a name only that virtual IP is shown, and only what is wrong with it is an answer of no."""
    faulty = router("ingress", state="fault", fault_reasons=["eth0 has no carrier"])
    with answering(paths, answer(router(), faulty)):
        one, other, both = vip(paths, "status", "api"), vip(paths, "status", "ingress"), vip(paths, "status")
    assert "ingress" not in one.stdout
    assert (one.exit_code, other.exit_code, both.exit_code) == (0, 1, 1)
    assert "! virtual IP ingress is in fault: eth0 has no carrier" in other.stdout


def test_status_as_json_is_what_the_program_said(paths: Paths):
    """Scripts get the answer as it is, with what a later version adds, and the one router they asked for."""
    said = answer(router(extra=5), router("ingress"), another=1)
    with answering(paths, said):
        found = json.loads(vip(paths, "status", "api", "--json").stdout)
    assert found == {**said, "routers": [said["routers"][0]], "connections": [], "sessions": []}


def test_everything_that_is_wrong_stands_on_top(paths: Paths):
    """A capability, a conflict, a rival and addresses that are not there are told in sentences."""
    conflict = {
        "kind": "version",
        "peer": "192.0.2.7",
        "detail": "version 3",
        "last_heard": time.time() - 7200,
    }
    odd = router(
        held=False,
        heard=[heard("192.0.2.9")],
        conflicts=[conflict],
        parts=[
            part("checked", up=None, added=0),
            part("file", value=3, added=-30, weight=-10),
            part("dead", up=False, added=0, weight=None, detail="connection refused"),
        ],
        priority=70,
    )
    with answering(paths, answer(odd, missing=["CAP_NET_RAW"], late_wakeups=2, latest_wakeup_s=0.25)):
        result = vip(paths, "status")
    shown = " ".join(result.stdout.split())
    assert result.exit_code == 1
    for text in (
        "! vrrp lacks CAP_NET_RAW: no virtual IP can be held here",
        "! virtual IP api is active, but its addresses are not on the interface",
        "! virtual IP api is active here and on 192.0.2.9 (priority 90) at the same time",
        "! virtual IP api is active here, in conflict with 192.0.2.7 (version): version 3",
        "vrrp woke up late 2 times, by 250ms at worst",
        "conflict version with 192.0.2.7, 2h ago: version 3",
        "priority 70 = 100 -30 file",
        "checked checking 20 0",
        "file up (3) -10 -30",
        "dead down fault 0 connection refused",
    ):
        assert text in shown


def test_a_young_program_has_little_to_show(paths: Paths):
    """Before its first election there is a state and nothing more."""
    young = {
        "name": "api",
        "state": "initialize",
        "addresses": ["192.0.2.200/24"],
        "priority": 100,
        "base": 100,
    }
    with answering(paths, {"routers": [young]}):
        result = vip(paths, "status")
    assert result.exit_code == 0
    assert "api: initialize, 192.0.2.200/24" in result.stdout
    assert "heard" not in result.stdout


def test_move_names_the_successor(paths: Paths):
    """A hand-over ends with who serves now; a second one has nothing to hand over."""
    with answering(paths, answer(router()), successor="192.0.2.9"):
        moved, again = vip(paths, "move", "api"), vip(paths, "move", "api")
        state = json.loads(vip(paths, "status", "api", "--json").stdout)["routers"][0]["state"]
    assert (moved.exit_code, moved.stdout) == (0, "api: handed over to 192.0.2.9\n")
    assert (again.exit_code, again.stdout) == (1, "")
    assert "not active here, but backup" in again.stderr
    assert state == "backup"


def test_move_without_anybody_is_an_answer_of_no(paths: Paths):
    """Where nobody takes over, it says so, in JSON too."""
    with answering(paths, answer(router())):
        told, as_json = vip(paths, "move", "api"), vip(paths, "move", "api", "--json")
    assert (told.exit_code, as_json.exit_code) == (1, 1)
    assert "nobody took api over" in told.stderr
    expected = ["nobody took api over: it stays here"]
    assert json.loads(as_json.stdout) == {"name": "api", "ok": False, "successor": None, "errors": expected}


def test_reclaim(paths: Paths):
    """A virtual IP that was moved away takes part again."""
    with answering(paths, answer(router()), successor="192.0.2.9"):
        moved = json.loads(vip(paths, "move", "api", "--json").stdout)
        told, again = vip(paths, "reclaim", "api"), vip(paths, "reclaim", "api")
        as_json = vip(paths, "reclaim", "api", "--json")
    assert moved == {"name": "api", "ok": True, "successor": "192.0.2.9", "errors": []}
    assert (told.stdout, again.stdout) == (
        "api: priorities decide again\n",
        "api: was not moved away\n",
    )
    assert json.loads(as_json.stdout) == {"name": "api", "ok": True, "errors": []}


@pytest.mark.parametrize("command", ["status", "move", "reclaim"])
def test_an_unknown_name_is_misuse(paths: Paths, command: str):
    """A name that is not configured is answered with the one that was meant, whoever runs."""
    result = vip(paths, command, "apo")
    assert result.exit_code == 2
    assert "there is no virtual IP 'apo'. Did you mean api?" in result.stderr


@pytest.mark.parametrize("arguments", [["status"], ["move", "api"], ["reclaim", "api"]])
def test_nobody_answers(paths: Paths, arguments: list[str]):
    """Without the program the answer is no, and says where it was looked for."""
    result = vip(paths, *arguments)
    assert result.exit_code == 1
    assert "the program vrrp does not answer at" in result.stderr
    assert "vrrp.control (No such file or directory)" in result.stderr


def test_no_virtual_ips(paths: Paths):
    """Where none is configured nothing is wrong, and nothing is asked."""
    paths.accepted.write_bytes(encode(snapshot()))
    told, as_json = vip(paths, "status"), vip(paths, "status", "--json")
    assert (told.exit_code, told.stdout) == (0, "No virtual IPs are configured.\n")
    assert json.loads(as_json.stdout) == {"missing": [], "routers": []}
    assert "None is configured" in vip(paths, "move", "api").stderr


def test_shared_ips_are_elsewhere(paths: Paths):
    """Who looks for an address here is told which command shows it; JSON and one name are as without."""
    paths.accepted.write_bytes(encode(with_shared()))
    told, as_json = vip(paths, "status"), vip(paths, "status", "--json")
    assert told.stdout.splitlines() == [
        "Shared IPs: `appliance bgp status` shows them.",
        "No virtual IPs are configured.",
    ]
    assert json.loads(as_json.stdout) == {"missing": [], "routers": []}


def test_without_a_configuration_the_program_is_asked_all_the_same(paths: Paths):
    """A snapshot that cannot be read keeps nobody from asking the program."""
    paths.accepted.write_text("{")
    with answering(paths, answer(router())):
        assert vip(paths, "status", "api").exit_code == 0


@pytest.mark.parametrize("said", [{"routers": 5}, {"routers": [{"state": "active"}]}])
def test_an_answer_of_another_shape_is_no_traceback(paths: Paths, said: dict[str, object]):
    """What cannot be understood is said to be so."""
    with answering(paths, said):
        result = vip(paths, "status")
    assert result.exit_code == 1
    assert "is of another version" in result.stderr
