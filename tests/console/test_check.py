"""`appliance check`: every problem of a file, for people and for machines."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from appliance.console.command import main

pytestmark = pytest.mark.pure

WRONG = "pools:\n  masters:\n    retries: many\n    balanse: source\nlog: { level: info }\n"
WARNING = "every client that reaches `[::]:29445` sees servers and addresses: set `auth` or `allow`"
WARNED = "stats: { bind: '[::]:29445' }\n"

Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return a function that runs the command in an environment of its own."""

    def invoke(*arguments: str, **environment: str) -> Result:
        given = {"APPLIANCE_CONFIG": str(tmp_path / "appliance.yaml"), **environment}
        return CliRunner(env={"OLD_HAPROXY_PS_FORCE_DEL_TIMEOUT": None}).invoke(main, arguments, env=given)

    return invoke


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return the place of the configuration; nothing is there yet."""
    return tmp_path / "appliance.yaml"


@pytest.mark.promise("docs/configuring.md", "`check` lists every error with its place")
def test_every_error_is_a_line_with_its_place(run: Run, file: Path):
    """An editor can jump to each error, and the last line counts them."""
    file.write_text(WRONG)

    result = run("check", str(file))

    assert (result.exit_code, result.stdout.splitlines()) == (
        1,
        [
            f"{file}:2:3: warning: pools.masters: has no servers: every connection is refused",
            f"{file}:2:3: warning: pools.masters: no frontend uses this pool",
            f"{file}:3:14: pools.masters.retries: must be a whole number such as `3`, not `many`",
            f"{file}:4:5: pools.masters.balanse: unknown key `balanse`: did you mean `balance`?",
            f"{file}: 2 errors, 2 warnings",
        ],
    )


def test_a_misspelt_key_hides_nothing(run: Run, file: Path):
    """What stands below a key that is not known is judged in the same round, by the paths of the file."""
    file.write_text(
        "api:\n  frontend:\n    a: { bnd: ['[::]:1'], pool: nobody }\n    b: { bind: ['[::]:2'], pool: p }\n"
        "pols:\n  p: { servers: { s: { adress: '10.0.0.1:1' } } }\n"
    )

    result = run("check", str(file))

    assert (result.exit_code, result.stdout.splitlines()) == (
        1,
        [
            f"{file}:2:3: api.frontend: unknown key `frontend`: did you mean `frontends`?",
            f"{file}:3:10: api.frontend.a.bnd: unknown key `bnd`: did you mean `bind`?",
            f"{file}:3:33: api.frontend.a.pool: unknown pool `nobody`: known are p",
            f"{file}:5:1: pols: unknown key `pols`: did you mean `pools`?",
            f"{file}:6:24: pols.p.servers.s.adress: unknown key `adress`: did you mean `address`?",
            f"{file}: 5 errors",
        ],
    )


def test_a_right_file_is_ok(run: Run, file: Path):
    """Without a problem one line says so."""
    file.write_text("{}")

    result = run("check", str(file))

    assert (result.exit_code, result.stdout) == (0, f"{file}: ok\n")


def test_warnings_do_not_fail(run: Run, file: Path):
    """A file with warnings alone is right; the warnings are told."""
    file.write_text(WARNED)

    result = run("check", str(file))

    assert (result.exit_code, result.stdout.splitlines()) == (
        0,
        [
            f"{file}:1:16: warning: stats.bind: {WARNING}",
            f"{file}: ok, 1 warning",
        ],
    )


def test_the_file_of_the_appliance_is_checked_by_default(run: Run, file: Path):
    """Without FILE it is the configuration that APPLIANCE_CONFIG or --config names."""
    file.write_text(WARNED)

    assert run("check").stdout.endswith(f"{file}: ok, 1 warning\n")


def test_json_holds_the_same(run: Run, file: Path):
    """Machines get errors and warnings apart, each with stable keys."""
    file.write_text(WRONG)

    result = run("check", "--json", str(file))
    printed = json.loads(result.stdout)

    assert (result.exit_code, printed["ok"], printed["file"], len(printed["warnings"])) == (
        1,
        False,
        str(file),
        2,
    )
    assert printed["errors"][1] == {
        "message": "unknown key `balanse`: did you mean `balance`?",
        "severity": "error",
        "source": str(file),
        "path": "pools.masters.balanse",
        "line": 4,
        "column": 5,
    }


def test_json_of_a_right_file(run: Run, file: Path):
    """A right file is ok, with empty lists."""
    file.write_text("{}")

    assert json.loads(run("check", "--json").stdout) == {
        "ok": True,
        "file": str(file),
        "files": [str(file)],
        "errors": [],
        "warnings": [],
    }


def test_a_file_that_cannot_be_read_is_one_error(run: Run, file: Path):
    """A missing file, or a directory in its place, is an answer and no traceback."""
    file.mkdir()
    absent = file / "absent.yaml"

    missing, directory = run("check", str(absent)), run("check", str(file))

    assert (missing.exit_code, missing.stdout.splitlines()[0]) == (
        1,
        f"{absent}: cannot be read: No such file or directory",
    )
    assert (directory.exit_code, directory.stdout.splitlines()[0]) == (
        1,
        f"{file}: cannot be read: is a directory, not a file",
    )


def test_the_drain_time_of_the_environment_is_checked_too(run: Run, file: Path):
    """What `run` and `reload` would refuse is told here."""
    file.write_text("{}")

    result = run("check", OLD_HAPROXY_PS_FORCE_DEL_TIMEOUT="2m")

    assert (result.exit_code, result.stdout.splitlines()[0]) == (
        1,
        "OLD_HAPROXY_PS_FORCE_DEL_TIMEOUT: must be whole seconds such as `120`, not `2m`",
    )


def test_brackets_and_long_lines_come_out_as_they_are(run: Run, file: Path):
    """Nothing in a file is taken for markup, and no line is folded into a pipe."""
    file.write_text(f'log: {{ level: "[bold]{"x" * 300}" }}')

    lines = run("check").stdout.splitlines()

    assert (len(lines), "`[bold]xxx" in lines[0]) == (2, True)


def test_colours_are_for_terminals(run: Run, file: Path):
    """A terminal gets colours, a pipe gets none."""
    file.write_text(WRONG)

    plain, coloured = run("check"), run("check", FORCE_COLOR="1", TERM="xterm-256color")

    assert ("\x1b[" in plain.stdout, "\x1b[" in coloured.stdout) == (False, True)


@pytest.mark.parametrize("arguments", [("check", "a", "b"), ("check", "--what")])
def test_misuse_exits_2(run: Run, arguments: tuple[str, ...]):
    """Wrong arguments are misuse, not an answer."""
    assert run(*arguments).exit_code == 2


HAPROXY = (
    "defaults\n  mode tcp\n  timeout connect 1s\n  timeout client 1m\n  timeout server 1m\n"
    "global\n  maxconn 100\n"
    "frontend main\n  bind :6443\n  default_backend masters\n"
    "backend masters\n  server m0 192.0.2.1:6443 check\n"
)


def test_lines_that_do_not_mean_the_same_are_warnings(run: Run, file: Path, tmp_path: Path):
    """They have their place in the foreign file, and do not refuse it; no YAML is needed."""
    haproxy = tmp_path / "haproxy.cfg"
    haproxy.write_text(HAPROXY)

    for arguments in (("--haproxy", str(haproxy), "check"), ("check", "--haproxy", str(haproxy))):
        result = run(*arguments)

        assert result.exit_code == 0
        assert f"{haproxy}:7:11: warning: `maxconn 100`: " in result.stdout
        assert f"{haproxy}: ok, 1 warning" in result.stdout
    file.write_text(f"source: {{ haproxy: {haproxy} }}\n")
    assert f"{file}, {haproxy}: ok" in run("check").stdout
    assert json.loads(run("check", "--json").stdout)["files"] == [str(file), str(haproxy)]


def test_what_two_files_say_is_an_error_with_both_places(run: Run, file: Path, tmp_path: Path):
    """Each line of output leads to a place where it can be put right."""
    haproxy = tmp_path / "haproxy.cfg"
    haproxy.write_text(HAPROXY)
    file.write_text("pools:\n  masters:\n    servers:\n      m0: { address: '192.0.2.9:1' }\n")

    result = run("check", "--haproxy", str(haproxy))

    assert result.exit_code == 1
    assert (
        f"{file}:4:13: pools.masters.servers.m0.address: {haproxy} sets this too, on line 12" in result.stdout
    )


def test_a_named_file_is_needed_whatever_is_beside_it(run: Run, tmp_path: Path):
    """Without a name the YAML may be missing beside a haproxy.cfg; one that was named may not."""
    haproxy = tmp_path / "haproxy.cfg"
    haproxy.write_text(HAPROXY)
    absent = tmp_path / "absent.yaml"

    result = run("check", str(absent), APPLIANCE_HAPROXY=str(haproxy))

    assert result.exit_code == 1
    assert f"{absent}: cannot be read: No such file or directory" in result.stdout


@pytest.mark.promise("docs/virtual-ips.md", "a file that does not name this node is refused")
def test_a_file_for_other_nodes_is_refused_where_it_is_to_be_used(run: Run, file: Path):
    """The configuration of this machine has to name it; FILE may be checked anywhere, or for another node."""
    file.write_text(
        "virtual_ips:\n  a:\n    addresses: [10.0.0.1/24]\n    interface: eth0\n    router_id: 1\n"
        "    spread: { nodes: [lb-0, lb-1] }\n"
    )

    assert run("check", str(file)).exit_code == 0
    assert run("check", APPLIANCE_NODE="lb-1").exit_code == 0
    for refused in (run("check"), run("check", str(file), APPLIANCE_NODE="lb-2")):
        assert refused.exit_code == 1
        assert f"{file}:6:22: virtual_ips.a.spread.nodes: this node is `" in refused.stdout
