"""`appliance vr-ids` prints what runtimecfg prints."""

import json

import pytest
from click.testing import CliRunner

from appliance.console.command import main

pytestmark = pytest.mark.pure


def test_two_lines():
    """The lines are runtimecfg's to the letter."""
    result = CliRunner().invoke(main, ["vr-ids", "cnf10"])
    assert result.output == "APIVirtualRouterID: 147\nIngressVirtualRouterID: 2\n"
    assert result.exit_code == 0


def test_json():
    """The keys are cluster, api and ingress."""
    result = CliRunner().invoke(main, ["vr-ids", "--json", "cnf11"])
    assert json.loads(result.output) == {"cluster": "cnf11", "api": 228, "ingress": 147}


def test_empty_name():
    """An empty name is misuse, in runtimecfg's words."""
    result = CliRunner().invoke(main, ["vr-ids", ""])
    assert result.exit_code == 2
    assert "Cluster name can't be empty" in result.output
