"""`appliance leave` and `rebalance`, where nobody runs."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from appliance.console.command import main
from appliance.model.paths import Paths
from appliance.model.program_names import MIGRATE
from appliance.net.control.control_server import Call, ControlServer
from appliance.wire.lines.control import Answer, good

pytestmark = pytest.mark.sockets


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--if-kept", "connections of virtual IPs would end: `linger` is not configured"),
        ("--wait", "does not answer"),
    ],
)
def test_it_asks_only_if_connections_are_kept(tmp_path: Path, option: str, said: str):
    """Without `linger` they end: with --if-kept no program is asked."""
    done = CliRunner().invoke(
        main, ["leave", option, "--runtime-dir", str(tmp_path), "--state-dir", str(tmp_path)]
    )
    assert (done.exit_code, said in done.output) == (1, True), done.output


def test_a_time_has_a_unit(tmp_path: Path):
    """As in the configuration."""
    done = CliRunner().invoke(main, ["leave", "--within", "10", "--runtime-dir", str(tmp_path)])
    assert (done.exit_code, "10s" in done.output) == (2, True), done.output


def test_rebalance_needs_programs_that_run(tmp_path: Path):
    """It names the one that does not answer."""
    for more, program in (([], "linger"), (["--share", "10"], "migrate")):
        done = CliRunner().invoke(main, ["rebalance", "lb-1", *more, "--runtime-dir", str(tmp_path)])
        assert (done.exit_code, f"program {program} does not answer" in done.output) == (1, True), done.output


def test_rebalance_asks_for_the_share_and_prints_what_became_of_it(tmp_path: Path):
    """Percent become a part of one; sessions that stay are printed with their reason."""
    asked = list[dict[str, object]]()

    def rebalance(call: Call) -> Answer:
        asked.append(dict(call.question.values))
        moved = {"address": "198.51.100.10", "node": "192.0.2.4", "moved": 7, "stay": {"it connects": 2}}
        return good(addresses=[{**moved, "trouble": ""}])

    server = ControlServer(Paths(runtime=tmp_path).control(MIGRATE), {"rebalance": rebalance}, on_error=_fail)
    command = ["rebalance", "lb-1", "--share", "10", "--runtime-dir", str(tmp_path)]
    done = CliRunner().invoke(main, command)
    server.close()
    assert (done.exit_code, asked) == (0, [{"node": "lb-1", "share": 0.1}]), done.output
    assert done.output == "198.51.100.10: 7 moved to 192.0.2.4\n  2 stay: it connects\n"


def _fail(where: str, error: Exception) -> None:
    raise AssertionError(where) from error
