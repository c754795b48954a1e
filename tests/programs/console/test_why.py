"""`appliance why` beside real programs: each situation is brought about, then explained by its cause."""

import json
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from copy import deepcopy

import pytest
from support.network.ports import free_port
from support.peers.backend import Backend
from support.peers.cluster import Cluster, cluster
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance

pytestmark = pytest.mark.programs

Told = dict[str, object]


def told(appliance: Appliance, name: str, *more: str) -> Told:
    """Return the explanation as JSON."""
    values: Told = json.loads(appliance.command("why", name, "--json", *more).stdout)
    return values


def wait_for(appliance: Appliance, name: str, holds: Callable[[Told], object], *more: str) -> Told:
    """Return the first explanation for which `holds` does."""
    found: list[Told] = []

    def look() -> bool:
        found[:] = [told(appliance, name, *more)]
        return bool(holds(found[0]))

    wait_until(look, what=f"the right explanation of {name}", timeout=120.0)
    return found[0]


def state(wanted: str) -> Callable[[Told], bool]:
    """Return a condition: the state of what is explained."""
    return lambda explanation: explanation["state"] == wanted


def text(explanation: Told) -> str:
    """Return everything that is told."""
    return json.dumps(explanation)


@pytest.fixture(scope="module")
def site() -> Iterator[Cluster]:
    """Run three masters and an appliance before them."""
    with cluster(masters=3, workers=1) as made:
        for each in made.masters:
            wait_for(made.appliance, f"masters/{each.name}", state("up"))
        yield made


@pytest.fixture
def reset(site: Cluster) -> Iterator[None]:
    """Afterwards every server is up again, with the configuration as it was."""
    yield
    for each in site.masters:
        each.ready(200)
        site.appliance.command("ready", f"masters/{each.name}")
    assert site.appliance.reload(site.config())["ok"]
    for each in site.masters:
        wait_for(site.appliance, f"masters/{each.name}", state("up"))


@pytest.mark.slow("a whole appliance for each situation")
@pytest.mark.usefixtures("reset")
def test_a_server_that_answers_badly(site: Cluster):
    """Down by its checks: the status that came, how many failed in a row, and what takes it up again."""
    site.master("master-1").ready(500)
    found = wait_for(site.appliance, "master-1", state("down"))
    assert (found["kind"], found["name"], found["decided_by"]) == ("server", "masters/master-1", "check")
    assert found["since"]
    assert "L7STS/500" in text(found)
    assert "wants 200-399" in text(found)
    assert "2 take a server down (fall)" in text(found)
    assert "2 more passed checks in a row take it up" in text(found)
    shown = site.appliance.command("why", "masters/master-1").stdout
    assert shown.startswith("masters/master-1 is down since ")
    assert "What would change it:" in shown


@pytest.mark.slow("a whole appliance for each situation")
@pytest.mark.usefixtures("reset")
def test_a_server_whose_checks_pass_again(site: Cluster):
    """Down still, as the count of passed checks is not complete."""
    config = deepcopy(site.config())
    config["pools"]["masters"]["check"] |= {"rise": 1000, "fall": 1}  # type: ignore[index]  # JSON
    assert site.appliance.reload(config)["ok"]
    site.master("master-2").ready(503)
    wait_for(site.appliance, "masters/master-2", lambda each: "L7STS/503" in text(each))
    site.master("master-2").ready(200)
    found = wait_for(site.appliance, "masters/master-2", lambda each: "pass again" in text(each))
    assert (found["state"], found["decided_by"]) == ("down", "check")
    assert "of 1000 in a row" in text(found)


@pytest.mark.slow("a whole appliance for each situation")
@pytest.mark.usefixtures("reset")
def test_a_server_that_flaps(site: Cluster):
    """How often it went down, when, and what its checks met, though it is up by now."""
    for status in (500, 503):
        site.master("master-1").ready(status)
        wait_for(site.appliance, "master-1", state("down"))
        site.master("master-1").ready(200)
        wait_for(site.appliance, "master-1", state("up"))
    [said] = [each for each in told(site.appliance, "master-1")["history"] if "went down" in each]  # type: ignore[attr-defined]  # JSON
    assert re.search(r"^It went down \d+ times in the last 1h", said)
    for status in (500, 503):
        assert re.search(rf"\d\d:\d\d:\d\d \(L7STS, {status}[^)]*\)", said)
    lines = site.appliance.command("why", "master-1").stdout.splitlines()
    assert "Before:" in lines
    site.appliance.command("drain", "masters/master-1")
    wait_for(site.appliance, "master-1", lambda each: "An operator put it into drain at" in text(each))


@pytest.mark.slow("a whole appliance for each situation")
@pytest.mark.usefixtures("reset")
@pytest.mark.parametrize("word", ["drain", "maint"])
def test_a_server_that_an_operator_has_taken_out(site: Cluster, word: str):
    """The operator decided, and the command that undoes it is named."""
    site.appliance.command(word, "masters/master-0")
    found = wait_for(site.appliance, "masters/master-0", state(word))
    assert found["decided_by"] == "operator"
    assert "appliance ready masters/master-0" in text(found["changes"])  # type: ignore[arg-type]  # JSON


@pytest.mark.slow("a whole appliance for each situation")
@pytest.mark.usefixtures("reset")
def test_slow_start(site: Cluster):
    """Up again, with a part of its share, and how long until the whole of it."""
    assert site.appliance.reload(site.config(slow_start="60m"))["ok"]
    site.appliance.command("maint", "masters/master-0")
    wait_for(site.appliance, "masters/master-0", state("maint"))
    site.appliance.command("ready", "masters/master-0")
    found = wait_for(site.appliance, "masters/master-0", lambda each: "slow_start" in text(each))
    assert (found["state"], found["decided_by"]) == ("up", "check")
    assert "gets 5% of its share" in text(found)


@pytest.mark.slow("a whole appliance for each situation")
@pytest.mark.usefixtures("reset")
def test_a_backup_that_is_used(site: Cluster):
    """The pool says why, and the backup that it is used now."""
    config = deepcopy(site.config())
    config["pools"]["masters"]["servers"]["master-2"]["backup"] = True  # type: ignore[index]  # JSON
    assert site.appliance.reload(config)["ok"]
    found = wait_for(site.appliance, "master-2", lambda each: "is a backup" in text(each))
    assert "only while no other server" in text(found)
    for name in ("master-0", "master-1"):
        site.appliance.command("maint", f"masters/{name}")
    found = wait_for(site.appliance, "master-2", lambda each: "is used now" in text(each))
    assert found["state"] == "up"
    pool = wait_for(site.appliance, "masters", state("on-backups"))
    assert (pool["kind"], pool["decided_by"]) == ("pool", "operator")


@pytest.mark.slow("a whole appliance for each situation")
@pytest.mark.usefixtures("reset")
def test_a_pool_without_servers(site: Cluster):
    """The pool tells of each server, and the frontend that it turns clients away for that."""
    for each in site.masters:
        each.ready(500)
    pool = wait_for(site.appliance, "masters", state("empty"))
    assert pool["decided_by"] == "check"
    assert all(each.name in text(pool) for each in site.masters)
    frontend = wait_for(site.appliance, "kube-api", state("no-server"))
    assert frontend["decided_by"] == "check"
    assert "appliance why masters --kind pool" in text(frontend)
    assert told(site.appliance, f":{site.port}")["name"] == "kube-api"


@pytest.mark.slow("a whole appliance for each situation")
@pytest.mark.usefixtures("reset")
def test_a_full_frontend(site: Cluster):
    """At max_connections new ones wait, and the command shows who has the others."""
    config = {**site.config(), "defaults": {"drain": "1s", "max_connections": 2}}
    assert site.appliance.reload(config)["ok"]
    with ExitStack() as stack:
        for _ in range(2):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", site.port), timeout=15))
            client.sendall(b"line a\n")
            assert client.recv(100)
        found = wait_for(site.appliance, "kube-api", state("full"))
    assert found["decided_by"] == "limit"
    assert "2 of 2 connections" in text(found)
    assert "appliance sessions --frontend kube-api" in text(found)


@pytest.mark.slow("a whole appliance for each situation")
@pytest.mark.usefixtures("reset")
def test_a_bind_that_another_program_has(site: Cluster):
    """The frontend serves as before, and the refused reload is told with who has the port."""
    with Backend("other") as other:
        config = deepcopy(site.config())
        config["api"]["frontends"]["kube-api"]["bind"] = [f"127.0.0.1:{other.port}"]  # type: ignore[index]  # JSON
        assert not site.appliance.reload(config)["ok"]
        found = wait_for(site.appliance, "kube-api", state("serving-as-before"))
        assert found["decided_by"] == "other-program"
        assert f"127.0.0.1:{other.port}" in text(found)
        assert "in use" in text(found)
        assert "last reload" in text(told(site.appliance, "master-0"))


def test_a_server_that_is_gone(site: Cluster):
    """Down by L4: nothing answers, sessions are closed; and the address leads to the same explanation."""
    with Backend("extra") as extra:
        config = deepcopy(site.config())
        config["pools"]["masters"]["servers"]["extra"] = {"address": f"127.0.0.1:{extra.port}"}  # type: ignore[index]  # JSON
        assert site.appliance.reload(config)["ok"]
        wait_for(site.appliance, "extra", state("up"))
    # A check under way when it goes is cut off, which counts as an answer: it may be down one check sooner.
    gone = f"127.0.0.1:{extra.port}"
    found = wait_for(site.appliance, gone, lambda shown: "Nothing answers there" in text(shown))
    assert (found["name"], found["state"], found["decided_by"]) == ("masters/extra", "down", "check")
    assert "L4CON" in text(found)
    assert site.appliance.reload(site.config())["ok"]


@pytest.mark.slow("a whole appliance for each situation")
def test_names(site: Cluster):
    """A slip gets a suggestion, an address of several things all of them, and both are misuse."""
    slip = site.appliance.command("why", "mastrs/master-1", check=False)
    assert (slip.returncode, "Did you mean masters/master-1" in slip.stderr) == (2, True)
    several = site.appliance.command("why", "127.0.0.1", check=False)
    assert several.returncode == 2
    assert "masters/master-0 (a server)" in several.stderr
    nothing = site.appliance.command("why", "xyzzy", check=False)
    assert (nothing.returncode, "appliance status" in nothing.stderr) == (2, True)


def test_an_event_of_the_log(site: Cluster):
    """Its meaning and the next step, with the socket of this appliance; a word that is neither is misuse."""
    socket_of_ours = f"supervisorctl -s unix://{site.appliance.paths.supervisor_socket}"
    said = " ".join(site.appliance.command("why", "tracker-line").stdout.split())
    assert "did not understand each other" in said
    assert f"{socket_of_ours} restart vrrp" in said
    values = told(site.appliance, "worker-died")
    assert (values["kind"], values["name"]) == ("log-event", "worker-died")
    assert values["means"]
    assert "appliance support" in str(values["step"])
    assert site.appliance.command("why", "worker-died", "--kind", "pool", check=False).returncode == 2


@pytest.mark.slow("a whole appliance for each situation")
def test_a_frontend_whose_port_is_taken_at_the_start():
    """Nobody listens for it, and the program that has the port is to blame."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        taken = listener.getsockname()[1]
        config = {
            "api": {"workers": 1, "frontends": {"through": {"bind": [f"127.0.0.1:{taken}"], "pool": "one"}}},
            "pools": {"one": {"servers": {"a": {"address": f"127.0.0.1:{free_port()}"}}}},
        }
        appliance = Appliance(config)
        appliance.launch()
        try:
            wait_until(appliance.paths.accepted.exists, what="a configuration is accepted", timeout=30)
            found = wait_for(appliance, "through", lambda each: "in use" in text(each))
        finally:
            appliance.__exit__(None)
    assert (found["state"], found["decided_by"]) == ("not-listening", "other-program")


@pytest.mark.slow("a whole appliance for each situation")
def test_the_last_good_configuration_in_use():
    """Whatever is asked, it says that the file is not what runs."""
    with Backend("one") as backend:
        pool = {"servers": {"a": {"address": f"127.0.0.1:{backend.port}"}}}
        frontend = {"bind": [f"127.0.0.1:{free_port()}"], "pool": "one"}
        config = {"api": {"workers": 1, "frontends": {"through": frontend}}, "pools": {"one": pool}}
        with Appliance(config) as appliance:
            wait_for(appliance, "one/a", state("up"))
            appliance.stop(patience=30)
            appliance.paths.config.write_text("pools: 7\n")
            appliance.start()
            found = wait_for(appliance, "one/a", lambda each: "last good" in text(each))
            assert "pools" in text(found["circumstances"])  # type: ignore[arg-type]  # JSON
            assert "appliance reload" in text(found)
