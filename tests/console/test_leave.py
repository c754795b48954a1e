"""`appliance leave` and `rebalance`, where nobody runs."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from appliance.console.command import main

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
