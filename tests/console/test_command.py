"""The `appliance` command itself: overview, misuse, start-up."""

import signal
import socket
import subprocess
import sys

import pytest
from click.testing import CliRunner

import appliance
from appliance.console.command import COMMANDS, main

pytestmark = pytest.mark.sockets


def test_version():
    """The version is the package's."""
    assert CliRunner().invoke(main, ["--version"]).output == f"appliance {appliance.__version__}\n"


def test_overview_names_every_command():
    """The overview has a line for each command."""
    shown = CliRunner().invoke(main, ["--help"]).output
    assert all(f"  {name} " in shown for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(name: str):
    """Help ends with an example of the command."""
    result = CliRunner().invoke(main, [name, "--help"])
    assert result.exit_code == 0
    assert "Example" in result.output
    assert f"appliance {name}" in result.output or name == "run"


def test_unknown_command_suggests_the_nearest():
    """A slip of the finger is answered with the name that was meant, as misuse."""
    result = CliRunner().invoke(main, ["statsu"])
    assert result.exit_code == 2
    assert "Did you mean 'status'?" in result.output


def test_unlike_command_is_refused():
    """A name that resembles none is misuse as well."""
    assert CliRunner().invoke(main, ["xyzzy"]).exit_code == 2


def test_roots_can_be_moved_by_options_and_variables():
    """Variables win over the fixed places, and options over variables."""
    environment = {"APPLIANCE_RUNTIME_DIR": "/nowhere/variable"}
    by_variable = CliRunner().invoke(main, ["status"], env=environment)
    assert "/nowhere/variable/accepted.json" in by_variable.output
    by_option = CliRunner().invoke(main, ["--runtime-dir", "/nowhere/option", "status"], env=environment)
    assert "/nowhere/option/accepted.json" in by_option.output


@pytest.mark.programs
@pytest.mark.parametrize("module", ["pydantic", "gevent", "rich", "yaml", "msgspec"])
def test_vr_ids_loads_little(module: str):
    """A command in a shell loop does not load what it does not need."""
    code = (
        "import sys; from appliance.console.command import main\n"
        f"main(['vr-ids', 'x'], standalone_mode=False); sys.exit({module!r} in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.programs
def test_a_closed_pipe_is_no_traceback():
    """Output into a pipe whose reader has gone ends quietly."""
    line = f"{sys.executable} -m appliance.console schema | head -c 1"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""


@pytest.mark.programs
@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("reload.sock", ["reload"]),
        ("worker-x-1-0.control", ["sessions"]),
        ("health.control", ["maint", "a/b"]),
        ("vrrp.control", ["vip", "move", "api"]),
    ],
)
def test_an_interrupt_is_quiet(tmp_path_factory: pytest.TempPathFactory, name: str, command: list[str]):
    """Ctrl-C while a program does not answer ends the command with 130 and without a word."""
    runtime = tmp_path_factory.mktemp("i")
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(runtime / name))
        silent.listen()
        # A shell that runs the tests in the background has them ignore the signal, and so does their child.
        process = subprocess.Popen(
            [
                *("env", "--default-signal=INT"),
                *(sys.executable, "-m", "appliance.console", "--runtime-dir", str(runtime), *command),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        connection, _ = silent.accept()
        with connection:
            connection.settimeout(30)
            assert connection.recv(1)
            process.send_signal(signal.SIGINT)
            output, _ = process.communicate(timeout=30)
    assert (process.returncode, output.decode()) == (130, "")


@pytest.mark.parametrize(
    "words",
    [
        ["status", "--runtime-dir", "/nowhere/after"],
        ["status", "--json", "--runtime-dir=/nowhere/after"],
        ["--runtime-dir", "/nowhere/before", "status", "--runtime-dir", "/nowhere/after"],
    ],
)
def test_shared_options_may_follow_the_command(words: list[str]):
    """Where the appliance lives may be said before or after the command; the last one counts."""
    assert "/nowhere/after/accepted.json" in CliRunner().invoke(main, words).output


def test_a_shared_option_of_a_nested_command():
    """It holds for a command of a command, too."""
    done = CliRunner().invoke(main, ["vip", "status", "--runtime-dir", "/nowhere/after"])
    assert "/nowhere/after/vrrp.control" in done.output


def test_after_two_dashes_nothing_is_an_option():
    """What follows `--` is given to the command as it is."""
    done = CliRunner().invoke(main, ["maint", "--", "--config"])
    assert "/nowhere" not in done.output
    assert "--config" in done.output


def test_a_shared_option_without_its_value_is_misuse():
    """The last word of the line has no value behind it."""
    done = CliRunner().invoke(main, ["status", "--runtime-dir"])
    assert done.exit_code == 2
    assert "--runtime-dir" in done.output
