"""`appliance alive`: what the health check of a container hears."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.network.ports import free_port
from support.peers.backend import Backend
from support.supervisor.appliance import Appliance

from appliance.console.command import main

pytestmark = pytest.mark.programs

Config = dict[str, object]


@pytest.fixture
def config() -> Iterator[Config]:
    """A pool whose only server is there."""
    with Backend("master-0") as backend:
        frontend = {"bind": [f"127.0.0.1:{free_port()}"], "pool": "masters"}
        server = {"address": f"127.0.0.1:{backend.port}"}
        yield {
            "api": {"workers": 1, "frontends": {"kube-api": frontend}},
            "pools": {"masters": {"check": {"type": "tcp"}, "servers": {"master-0": server}}},
            "defaults": {"drain": "1s"},
        }


def _alive(appliance: Appliance) -> Result:
    options = ["--runtime-dir", str(appliance.paths.runtime), "alive"]
    return CliRunner().invoke(main, options)


def _with_endpoints(config: Config, **endpoints: Config) -> Config:
    api = config["api"]
    assert isinstance(api, dict)
    return {**config, "api": {**api, "frontends": {**api["frontends"], **endpoints}}}


def test_asks_the_endpoint(config: Config):
    """The endpoint that tells of the appliance is asked, not the one that tells of its servers."""
    port = free_port()
    endpoints = {
        "monitor": {"bind": [f"[::]:{free_port()}"], "respond": "/haproxy_monitor", "needs": "masters"},
        "other": {"bind": [f"[::]:{free_port()}"], "respond": "/other"},
        "ready": {"bind": [f"[::]:{port}"], "respond": "/haproxy_ready"},
    }
    with Appliance(_with_endpoints(config, **endpoints)) as appliance:
        said = _alive(appliance)
    assert (said.exit_code, said.output) == (0, f"ready at [::]:{port}: answers 200\n")


def test_without_an_endpoint_it_asks_every_program(config: Config):
    """Without an endpoint every program has to answer; one that does not is named."""
    with Appliance(config) as appliance:
        assert _alive(appliance).output == "every program answers\n"
        appliance.supervisorctl("stop", "health")
        said = _alive(appliance)
    assert said.exit_code == 1
    assert "the program health does not answer" in said.output


def test_nothing_runs(tmp_path: Path):
    """Where nothing runs the answer is no."""
    said = CliRunner().invoke(main, ["--runtime-dir", str(tmp_path), "alive"])
    assert said.exit_code == 1
    assert "Is the appliance running?" in said.output


def test_nobody_answers_at_the_endpoint(config: Config):
    """An endpoint that nobody answers is named."""
    endpoint = {"bind": [f"127.0.0.1:{free_port()}"], "respond": "/haproxy_ready"}
    with Appliance(_with_endpoints(config, ready=endpoint)) as appliance:
        appliance.stop(patience=10)
        said = _alive(appliance)
    assert said.exit_code == 1
    assert said.output.startswith("Error: ready at 127.0.0.1:")
    assert said.output.endswith(": Connection refused\nNext: `appliance why ready --kind frontend`\n")
