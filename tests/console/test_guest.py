"""`appliance guest` on a machine whose file system is a folder: properties to files and words."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.machines import nobody
from support.machines.guest import Guest, guest
from support.machines.ovf import environment
from support.values.keys import ED25519

from appliance.console.command import main
from appliance.model.guest.report import GuestReport, Origin
from appliance.model.loading.loading import load
from appliance.model.paths import Paths
from appliance.net.files.guest_report_file import publish

pytestmark = pytest.mark.programs

PROPERTIES = {
    "lb.hostname": "lb-1.example.com",
    "lb.address": "10.0.0.11/24",
    "lb.gateway": "10.0.0.1",
    "lb.ssh_key": ED25519,
    "lb.cluster_name": "ocp4",
    "lb.masters": "10.0.0.34, 10.0.0.99",
    "lb.api_vip": "10.0.0.200",
    "lb.vrrp_priority": "100",
}
CHANGED = {**PROPERTIES, "lb.masters": "10.0.0.34"}


@pytest.fixture
def machine(tmp_path: Path) -> Guest:
    """Give a machine that nothing has been said to."""
    return guest(tmp_path)


def show(machine: Guest, *arguments: str) -> Result:
    """Run `appliance guest show` on the machine."""
    words = ["--runtime-dir", str(machine.root / "run/appliance"), "guest", "show", *arguments]
    return CliRunner().invoke(main, words)


def test_properties_are_applied(machine: Guest):
    """VMware's tool says them; network, keys, name and a configuration that the loader takes are there."""
    machine.vmware(PROPERTIES)
    result = machine.apply()
    assert result.exit_code == 0, result.output
    assert "Address=10.0.0.11/24" in machine.read("run/systemd/network/10-appliance.network")
    assert machine.read("etc/hostname") == "lb-1.example.com\n"
    assert ED25519 in machine.read("etc/ssh/authorized_keys.d/admin")
    assert load(machine.yaml.read_bytes(), source="x", number=1).problems == ()
    assert 'interface: "ens192"' in machine.yaml.read_text()
    assert machine.yaml.stat().st_mode & 0o777 == 0o640
    assert machine.report()["origin"] == "vmware"
    assert "VMware's tool" in result.stdout


def test_applying_again_changes_nothing(machine: Guest):
    """Neither a file nor what is known of it."""
    machine.vmware(PROPERTIES)
    machine.apply()
    before = machine.yaml.stat().st_ino
    machine.apply()
    assert machine.yaml.stat().st_ino == before
    assert machine.problems() == []


def test_changed_properties_are_applied(machine: Guest):
    """A file that nobody has touched follows them."""
    machine.vmware(PROPERTIES)
    machine.apply()
    machine.vmware(CHANGED)
    assert machine.apply().exit_code == 0
    assert "10.0.0.99" not in machine.yaml.read_text()


def test_without_sources_those_of_the_last_start_hold(machine: Guest):
    """An ISO may be taken out; that is said."""
    machine.vmware(PROPERTIES)
    machine.apply()
    (machine.programs / "vmware-rpctool").unlink()
    (machine.root / "run/systemd/network/10-appliance.network").unlink()
    result = machine.apply()
    assert machine.report()["origin"] == "remembered"
    assert "those of an earlier start" in result.stdout
    assert "Address=10.0.0.11/24" in machine.read("run/systemd/network/10-appliance.network")


def test_a_damaged_memory_is_none(machine: Guest):
    """Nothing is made of half a document."""
    machine.vmware(PROPERTIES)
    machine.apply()
    (machine.root / "var/lib/appliance-guest/environment.xml").write_text("<Environment>")
    (machine.programs / "vmware-rpctool").unlink()
    machine.apply()
    assert machine.report()["origin"] == "none"


def test_a_machine_that_was_told_nothing_can_be_reached(machine: Guest):
    """DHCP, no configuration, and words on what to do; keys that were put there otherwise stay."""
    keys = machine.root / "etc/ssh/authorized_keys.d/admin"
    keys.parent.mkdir(parents=True)
    keys.write_text("by hand\n")
    result = machine.apply()
    assert result.exit_code == 0
    assert "DHCP=yes" in machine.read("run/systemd/network/10-appliance.network")
    assert not machine.yaml.exists()
    assert "fill in the properties" in result.stdout
    assert keys.read_text() == "by hand\n"
    assert machine.problems() == []


def test_bad_properties_do_not_keep_the_machine_from_starting(machine: Guest):
    """Exit code 0, every problem told, and what is right applied."""
    machine.vmware(
        {**PROPERTIES, "lb.masters": "10.0.0.34:6443,10.0.0.99", "lb.dns": "x", "lb.hostname": "a b"}
    )
    result = machine.apply()
    assert result.exit_code == 0
    assert [each["key"] for each in json.loads(json.dumps(machine.report()["problems"]))] == [
        "hostname", "dns", "masters",
    ]  # fmt: skip
    assert "! Masters (masters): `10.0.0.34:6443` has a port" in result.stdout
    assert "Address=10.0.0.11/24" in machine.read("run/systemd/network/10-appliance.network")
    assert ED25519 in machine.read("etc/ssh/authorized_keys.d/admin")
    assert "10.0.0.34" not in machine.yaml.read_text()
    assert "10.0.0.99" in machine.yaml.read_text()


def test_bad_properties_leave_the_configuration_of_before(machine: Guest):
    """Where nothing is left that could be served: an earlier one is better than none."""
    machine.vmware(PROPERTIES)
    machine.apply()
    before = machine.yaml.read_text()
    machine.vmware({**PROPERTIES, "lb.masters": "10.0.0.34:6443"})
    assert "stays as it was" in machine.apply().stdout
    assert machine.yaml.read_text() == before


def test_a_refused_configuration_is_put_beside(machine: Guest):
    """With its errors told, by line; when it is right again the file beside goes."""
    machine.vmware({**PROPERTIES, "lb.config": "api: 1\nfoo: 2\n"})
    machine.apply()
    refused = machine.yaml.with_name("appliance.yaml.refused")
    assert refused.read_text().startswith("api: 1")
    assert not machine.yaml.exists()
    assert [problem["line"] for problem in machine.report()["problems"]] == [1, 2]  # type: ignore[attr-defined]
    machine.vmware(PROPERTIES)
    machine.apply()
    assert not refused.exists()


def edited(machine: Guest) -> str:
    """Apply, edit the configuration by hand, and return what it says then."""
    machine.vmware(PROPERTIES)
    machine.apply()
    machine.yaml.write_text(machine.yaml.read_text() + "log: { level: debug }\n")
    return machine.yaml.read_text()


def test_an_edited_file_stays_while_nothing_new_is_said(machine: Guest):
    """That is a note and no problem."""
    text = edited(machine)
    assert "was edited on this machine" in machine.apply().stdout
    assert machine.problems() == []
    assert machine.yaml.read_text() == text


def test_an_edited_file_and_changed_properties_are_a_problem(machine: Guest):
    """The file stays, the new one is beside it, and both ways out are told, at each start again."""
    text = edited(machine)
    machine.vmware(CHANGED)
    for _ in range(2):
        assert machine.apply().exit_code == 0
        [problem] = machine.problems()
        assert "--overwrite" in problem
        assert "--keep" in problem
    assert machine.yaml.read_text() == text
    beside = machine.yaml.with_name("appliance.yaml.from-properties").read_text()
    assert "10.0.0.99" not in beside


def test_overwriting_keeps_the_edited_file(machine: Guest):
    """The properties' is in place, the other one beside it."""
    text = edited(machine)
    machine.vmware(CHANGED)
    machine.apply()
    machine.apply("--overwrite")
    assert "10.0.0.99" not in machine.yaml.read_text()
    assert machine.yaml.with_name("appliance.yaml.edited").read_text() == text
    assert not machine.yaml.with_name("appliance.yaml.from-properties").exists()
    assert machine.problems() == []
    machine.yaml.write_text("# edited again\n")
    machine.apply("--overwrite")
    assert machine.yaml.with_name("appliance.yaml.edited").read_text() == text
    assert machine.yaml.with_name("appliance.yaml.edited.1").read_text() == "# edited again\n"


def test_what_the_properties_said_before_goes_once_they_are_wrong(machine: Guest):
    """`--overwrite` would not take it."""
    edited(machine)
    machine.vmware(CHANGED)
    machine.apply()
    machine.vmware({**CHANGED, "lb.masters": "10.0.0.34:1"})
    machine.apply()
    assert not machine.yaml.with_name("appliance.yaml.from-properties").exists()


def test_a_power_cut_is_no_edit(machine: Guest):
    """The configuration was written, and what is known of it was not; then the form is corrected."""
    machine.vmware(PROPERTIES)
    machine.apply()
    (machine.root / "var/lib/appliance-guest/record.json").unlink()
    machine.vmware(CHANGED)
    machine.apply()
    assert machine.problems() == []
    assert "10.0.0.99" not in machine.yaml.read_text()


def test_keeping_the_edited_file_ends_the_problem(machine: Guest):
    """Until something new is said again."""
    text = edited(machine)
    machine.vmware(CHANGED)
    machine.apply("--keep")
    machine.apply()
    assert machine.problems() == []
    assert machine.yaml.read_text() == text
    machine.vmware({**CHANGED, "lb.masters": "10.0.0.35"})
    machine.apply()
    assert len(machine.problems()) == 1


def test_both_at_once_are_misuse(machine: Guest):
    """Exit code 2."""
    assert machine.apply("--overwrite", "--keep").exit_code == 2


def test_a_file_that_cannot_be_written_fails_it(machine: Guest):
    """Exit code 1 with the file's name; everything else is done, and the report has it."""
    (machine.root / "etc").mkdir()
    (machine.root / "etc/appliance").write_text("no folder")
    machine.vmware(PROPERTIES)
    result = machine.apply()
    assert result.exit_code == 1
    assert "etc/appliance" in machine.problems()[0]
    assert "cannot be written" in machine.problems()[0]
    assert ED25519 in machine.read("etc/ssh/authorized_keys.d/admin")


def test_what_is_known_of_the_network_outlives_a_configuration_that_cannot_be_written(machine: Guest):
    """Without its source the machine has its address again at the next start."""
    machine.yaml.mkdir(parents=True)
    machine.vmware(PROPERTIES)
    assert machine.apply().exit_code == 1
    (machine.programs / "vmware-rpctool").unlink()
    machine.apply()
    assert machine.report()["origin"] == "remembered"
    assert "Address=10.0.0.11/24" in machine.read("run/systemd/network/10-appliance.network")


def test_a_storm_of_problems_is_kept_small(machine: Guest):
    """The first fifty, and how many more."""
    machine.vmware({**PROPERTIES, "lb.masters": " ".join(f"-{number}" for number in range(900))})
    machine.apply()
    assert len(machine.problems()) == 51
    assert machine.problems()[-1] == "and 852 more problems"  # and what that costs, twice


def test_a_damaged_key_does_not_take_the_place_of_a_good_one(machine: Guest):
    """Nor does an empty property: who could log in before still can."""
    machine.vmware(PROPERTIES)
    machine.apply()
    for said in (ED25519[:60], ""):
        machine.vmware({**PROPERTIES, "lb.ssh_key": said})
        machine.apply()
        assert ED25519 in machine.read("etc/ssh/authorized_keys.d/admin")
        assert machine.report()["login_keys"] == 1


def test_a_runtime_directory_that_cannot_be_made_fails_it(machine: Guest):
    """There is no report then, but words and an exit code."""
    (machine.root / "run").mkdir()
    (machine.root / "run/appliance").write_text("no folder")
    result = machine.apply()
    assert result.exit_code == 1
    assert "run/appliance" in result.output


def test_show_tells_it_again(machine: Guest):
    """As words and as JSON; without problems it exits 0, with some 1."""
    machine.credential(environment(PROPERTIES))
    machine.apply()
    shown = show(machine)
    assert shown.exit_code == 0
    assert "a systemd credential" in shown.stdout
    assert "cluster_name: ocp4" in shown.stdout
    assert ED25519 not in shown.stdout
    machine.credential(environment({**PROPERTIES, "lb.dns": "x"}))
    machine.apply()
    shown = show(machine, "--json")
    assert shown.exit_code == 1
    report = json.loads(shown.stdout)
    assert set(report) == {
        "origin",
        "applied_at",
        "properties",
        "problems",
        "notes",
        "login_keys",
        "management",
    }
    assert report["problems"][0]["key"] == "dns"


def test_show_without_a_report_says_so(machine: Guest):
    """On a machine that is no guest, before the first time, or with a damaged one."""
    assert "not there" in show(machine).output
    machine.apply()
    (machine.root / "run/appliance/guest.json").write_text("{")
    assert "is damaged" in show(machine).output
    assert show(machine).exit_code == 1


@pytest.mark.skipif(not nobody.possible(), reason="needs root: to become another user")
def test_show_to_another_user_says_how():
    """The runtime directory is the appliance's own: that is no report that is not there."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        paths = Paths(runtime=Path(directory) / "closed")
        publish(paths, GuestReport(origin=Origin.NONE, applied_at=1.0))
        words = [
            sys.executable,
            "-m",
            "appliance.console",
            "--runtime-dir",
            str(paths.runtime),
            "guest",
            "show",
        ]
        done = subprocess.run(nobody.command(words), capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "`sudo appliance guest show`" in done.stderr


def test_nothing_that_was_said_gives_orders_to_the_terminal(machine: Guest):
    """Neither at once nor in what is shown later."""
    machine.vmware({**PROPERTIES, "lb.masters": "10.0.0.34\u009b31m", "lb.dns": "x\\u0085- all is well"})
    for text in (machine.apply().output, show(machine).output):
        assert all(line.isprintable() for line in text.split("\n"))


def test_status_has_the_problems(machine: Guest):
    """`appliance status` says them, as words and as JSON; with no report it says nothing."""
    machine.vmware({**PROPERTIES, "lb.dns": "x"})
    runtime = str(machine.root / "run/appliance")

    def status(*arguments: str) -> str:
        return CliRunner().invoke(main, ["--runtime-dir", runtime, "status", *arguments]).stdout

    assert "DNS servers" not in status()
    assert json.loads(status("--json"))["guest"] is None
    machine.apply()
    assert "! property DNS servers (dns): must be an address" in status()
    found = json.loads(status("--json"))
    assert found["guest"]["origin"] == "vmware"
    assert any("DNS servers" in each for each in found["problems"])


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: owners of files")
def test_the_configuration_is_for_root_and_the_appliance_only(machine: Guest):
    """It may hold a password: root's, with the group where the machine has it."""
    machine.vmware(PROPERTIES)
    machine.apply()
    assert machine.yaml.stat().st_uid == 0
