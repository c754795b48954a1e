"""`appliance import`: today's files become our YAML, with a word on each of their lines."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from appliance.console.command import main
from appliance.model.loading.loading import load
from appliance.translation.translation import Outcome

pytestmark = pytest.mark.pure

HAPROXY = """\
defaults
  mode tcp
  timeout connect 1s
  timeout client 1m
  timeout server 1m
frontend main
  bind :6443
  default_backend masters
backend masters
  server m0 192.0.2.1:6443 check
"""
KEEPALIVED = """\
vrrp_script alive {
  script "/usr/bin/killall -0 haproxy"
}
vrrp_instance api {
  interface eth0
  virtual_router_id 51
  authentication {
    auth_type PASS
    auth_pass hunter2
  }
  virtual_ipaddress { 192.0.2.200/24 }
  track_script { alive }
}
"""
REFUSED = HAPROXY + "  nonsense here\n"

Run = Callable[..., Result]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go to a directory with both files."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "haproxy.cfg").write_text(HAPROXY)
    (tmp_path / "keepalived.conf").write_text(KEEPALIVED)
    return tmp_path


@pytest.fixture
def run(here: Path) -> Run:
    """Return a function that runs the command there."""

    def invoke(*arguments: str) -> Result:
        given = {"APPLIANCE_CONFIG": str(here / "none.yaml")}
        return CliRunner().invoke(main, arguments, env=given)

    return invoke


@pytest.mark.promise("docs/foreign-files.md", "`import` writes a configuration that `check` accepts")
def test_both_files_become_a_configuration_that_check_accepts(run: Run, here: Path):
    """Standard output is the YAML, standard error the report; checks for haproxy ask for our program."""
    result = run("import", "haproxy.cfg", "keepalived.conf")

    assert result.exit_code == 0, result.output
    (here / "appliance.yaml").write_text(result.stdout)
    assert run("check", "appliance.yaml").exit_code == 0
    snapshot = load(result.stdout, source="c.yaml", number=1).snapshot
    assert snapshot is not None
    assert [each.program for each in snapshot.groups] == ["proxy-api"]
    (router,) = snapshot.virtual_routers
    assert [each.target for each in router.track] == ["proxy-api"]
    assert "haproxy.cfg:7:3       kept" in result.stderr
    assert "0 refused" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "section"),
    [
        (("import", "haproxy.cfg"), "pools"),
        (("import", "--keepalived", "keepalived.conf"), "virtual_ips"),
        (("--keepalived", "keepalived.conf", "import"), "virtual_ips"),
        (("--haproxy", "haproxy.cfg", "import"), "pools"),
    ],
)
def test_either_file_will_do(run: Run, arguments: tuple[str, ...], section: str):
    """A node may have only one of the two."""
    result = run(*arguments)

    assert f"\n{section}:\n" in result.stdout


def test_a_refused_line_is_exit_1_with_its_place(run: Run, here: Path):
    """The YAML says at its top what it lacks."""
    (here / "haproxy.cfg").write_text(REFUSED)

    result = run("import", "haproxy.cfg", "-o", "out.yaml", "--report", "out.txt")

    assert (result.exit_code, result.stdout, result.stderr) == (1, "", "")
    assert "# These lines were refused" in (here / "out.yaml").read_text()
    assert "haproxy.cfg:11:3" in (here / "out.txt").read_text()
    assert "1 refused" in (here / "out.txt").read_text()


def test_json_names_every_line(run: Run):
    """Each line that says something is there, with one of the four outcomes."""
    result = run("import", "haproxy.cfg", "keepalived.conf", "--json")

    report = json.loads(result.stderr)
    said = {(each["file"], each["line"]) for each in report["lines"]}
    meant = [("haproxy.cfg", HAPROXY), ("keepalived.conf", KEEPALIVED)]
    lines = {
        (name, at)
        for name, text in meant
        for at, line in enumerate(text.splitlines(), start=1)
        if line.strip() != "}"
    }
    assert lines <= said
    assert {each["outcome"] for each in report["lines"]} <= {each.value for each in Outcome}
    assert report["ok"] is True


def test_what_is_there_is_not_replaced_unless_asked(run: Run, here: Path):
    """Neither the YAML nor the report; nothing is written where one of them is there."""
    (here / "out.txt").write_text("mine")

    result = run("import", "haproxy.cfg", "-o", "out.yaml", "--report", "out.txt")

    assert (result.exit_code, (here / "out.txt").read_text()) == (2, "mine")
    assert "--force" in result.stderr
    assert not (here / "out.yaml").exists()
    assert run("import", "haproxy.cfg", "-o", "out.yaml", "--report", "out.txt", "--force").exit_code == 0
    assert "kept" in (here / "out.txt").read_text()


def test_the_yaml_is_no_more_readable_than_the_files(run: Run, here: Path):
    """It holds the same password."""
    (here / "keepalived.conf").chmod(0o640)

    assert run("import", "haproxy.cfg", "keepalived.conf", "-o", "out.yaml").exit_code == 0

    assert (here / "out.yaml").stat().st_mode & 0o777 == 0o640


def test_several_files_of_haproxys(run: Run, here: Path):
    """As HAProxy's `-f`, again and again, with directories; the YAML is no more readable than any of them."""
    folder = here / "conf.d"
    folder.mkdir()
    (folder / "more.cfg").write_text("listen more\n  bind :1\n  server s 192.0.2.9:1 check\n")
    (folder / "more.cfg").chmod(0o640)

    result = run("--haproxy", "haproxy.cfg", "--haproxy", "conf.d", "import", "-o", "out.yaml")

    assert result.exit_code == 0
    text = (here / "out.yaml").read_text()
    assert ("main:" in text, "more:" in text, "more.cfg:3" in text) == (True, True, True)
    assert (here / "out.yaml").stat().st_mode & 0o777 == 0o640
    assert "more.cfg:3" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "nothing to import"),
        (("absent.cfg",), "absent.cfg: cannot be read: No such file or directory"),
        (("haproxy.cfg", "-o", ".", "--force"), ". is a directory, not a file"),
        (("haproxy.cfg", "--report", "absent/out.txt"), "absent/out.txt: No such file or directory"),
    ],
)
def test_misuse_is_exit_2_and_changes_nothing(run: Run, arguments: tuple[str, ...], said: str):
    """What cannot be read or written is named."""
    result = run("import", *arguments)

    assert result.exit_code in {1, 2}
    assert said in result.stderr


HTTP = """\
frontend web
  mode http
  bind :80
  redirect scheme https
"""


def test_sections_of_http_are_left_to_haproxy_where_that_is_asked_for(run: Run, here: Path):
    """The rest is imported; report and YAML say where nobody listens, and HAProxy's file is written."""
    (here / "haproxy.cfg").write_text(HAPROXY + HTTP)
    (here / "haproxy.cfg").chmod(0o640)
    unserved = "this appliance does not listen on :80"

    assert run("import", "haproxy.cfg").exit_code == 1
    result = run("import", "haproxy.cfg", "--http", "skip", "--rest", "rest.cfg")

    assert result.exit_code == 0, result.output
    assert load(result.stdout, source="c.yaml", number=1).snapshot is not None
    assert f"# the frontend `web` is left to HAProxy (`http: skip`): {unserved}" in result.stdout
    assert f"  haproxy.cfg:11:10: frontend web: {unserved}" in result.stderr
    rest = here / "rest.cfg"
    assert (rest.stat().st_mode & 0o777, HTTP in rest.read_text()) == (0o640, True)
    assert ":6443" not in rest.read_text()


def test_json_has_what_is_left_to_haproxy(run: Run, here: Path):
    """With its addresses."""
    (here / "haproxy.cfg").write_text(HAPROXY + HTTP)

    report = json.loads(run("import", "haproxy.cfg", "--http", "skip", "--json").stderr)

    assert report["left"] == [
        {
            "section": "frontend",
            "name": "web",
            "file": "haproxy.cfg",
            "line": 11,
            "addresses": [":80"],
        }
    ]


def test_where_nothing_is_left_no_file_is_written(run: Run, here: Path):
    """Neither where nothing was asked for, nor where the file has no HTTP."""
    without = run("import", "haproxy.cfg", "--rest", "rest.cfg")
    assert (without.exit_code, "--rest requires --http skip" in without.stderr) == (2, True)

    nothing = run("import", "haproxy.cfg", "--http", "skip", "--rest", "rest.cfg")
    assert (nothing.exit_code, "rest.cfg is not written" in nothing.stderr) == (0, True)
    assert not (here / "rest.cfg").exists()
