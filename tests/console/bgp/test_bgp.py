"""`appliance bgp status` against a program that answers as `announce` does."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.processes.processes import running
from support.processes.waiting import wait_until
from support.values.shared_ips import announcing, bgp, neighbor, session, shared_status, with_shared
from support.values.snapshots import snapshot

from appliance.console.command import main
from appliance.model.paths import Paths
from appliance.model.snapshot.shared_ip import Engine
from appliance.model.snapshot.snapshot import Snapshot, encode
from appliance.wire.lines.announce_status import AnnounceStatus
from appliance.wire.lines.status_answer import encode as encode_status

pytestmark = pytest.mark.programs

_TESTS = str(Path(__file__).parents[2])


@pytest.fixture
def paths(tmp_path_factory: pytest.TempPathFactory) -> Paths:
    """Give a runtime directory with a short name."""
    root = tmp_path_factory.mktemp("b")
    return Paths(config=root / "appliance.yaml", runtime=root, state=root)


def ran(paths: Paths, *arguments: str) -> Result:
    """Run the command."""
    return CliRunner().invoke(main, ["bgp", *arguments], env={**paths.environment(), "COLUMNS": "200"})


@contextmanager
def answering(paths: Paths, accepted: Snapshot, said: AnnounceStatus) -> Iterator[None]:
    """Have a program answer on the socket of `announce`, with this configuration accepted."""
    paths.accepted.write_bytes(encode(accepted))
    file = paths.runtime / "answer.json"
    file.write_text(json.dumps(encode_status(said)))
    socket = paths.control("announce")
    arguments = [sys.executable, "-m", "support.vrrp.fake_vrrp", str(socket), str(file)]
    with running(arguments, log=paths.runtime / "log", environment={**os.environ, "PYTHONPATH": _TESTS}):
        wait_until(socket.exists, what="the program listens")
        yield


def test_status_shows_everything(paths: Paths):
    """Each address with its state, who has learnt it and who else serves it; each session with its error."""
    down = session("tor-b", address="10.9.0.1", state="Active", bfd="Down", error="Received: Bad peer AS")
    shared = shared_status(neighbors=("tor-a", "tor-b"))
    with answering(
        paths, with_shared(by=bgp(neighbor(), neighbor("tor-b"))), announcing(shared, by=(session(), down))
    ):
        result = ran(paths, "status")
    shown = " ".join(result.stdout.split())
    assert result.exit_code == 1
    for text in (
        "! the BGP session with tor-b is down: Received: Bad peer AS",
        "ingress-all 198.51.100.10/32 2001:db8:10::10/128 serving",
        "1/2 lb-1, lb-2 all tracks are up",
        "tor-a 10.0.0.1 64600 Established",
        "tor-b 10.9.0.1 64600 Active",
        "Down 1 Received: Bad peer AS",
    ):
        assert text in shown


def test_all_is_well(paths: Paths):
    """Nothing is wrong: exit code 0; JSON is what the program said."""
    said = announcing(shared_status(), by=(session(),))
    with answering(paths, with_shared(), said):
        table, values = ran(paths, "status"), ran(paths, "status", "--json")
    assert (table.exit_code, values.exit_code) == (0, 0)
    assert "!" not in table.stdout
    assert json.loads(values.stdout) == json.loads(json.dumps(encode_status(said)))


@pytest.mark.parametrize(
    ("state", "shown"),
    [("serving", "table 198"), ("drained", "table 199"), ("starting", " - ")],
)
def test_of_another_daemon_only_the_tables_are_known(paths: Paths, state: str, shown: str):
    """It says where the address is written, and who knows the rest."""
    by = bgp(neighbor(), engine=Engine.TABLE)
    said = announcing(shared_status(state=state, announced_to=(), others=()), by=(), engine="table")
    with answering(paths, with_shared(by=by), said):
        result = ran(paths, "status")
    text = " ".join(result.stdout.split())
    assert shown in f" {text} "
    assert "whether they are announced is the other daemon's to show" in text
    assert "10.0.0.1" not in text


def test_nobody_answers(paths: Paths):
    """It says which program, and what shows more."""
    paths.accepted.write_bytes(encode(with_shared()))
    result = ran(paths, "status")
    assert result.exit_code == 1
    assert "the program announce does not answer" in result.stderr


@pytest.mark.parametrize(
    ("content", "said"), [(b"{", "accepted"), (None, "there is no accepted configuration")]
)
def test_without_a_configuration(paths: Paths, content: bytes | None, said: str):
    """It is refused with the file."""
    if content is not None:
        paths.accepted.write_bytes(content)
    result = ran(paths, "status")
    assert result.exit_code == 1
    assert said in result.stderr


def test_without_shared_ips(paths: Paths):
    """No program is asked."""
    paths.accepted.write_bytes(encode(snapshot()))
    assert ran(paths, "status").stdout == "No shared IPs are configured.\n"
    assert json.loads(ran(paths, "status", "--json").stdout) == {"addresses": [], "neighbors": []}


CONFIGURATION = """
shared_ips: { web: { addresses: [198.51.100.10/32] } }
bgp:
  { engine: table, asn: 64512, router_id: 10.0.0.11, neighbors: { tor-a: { address: 10.0.0.1, asn: 64600 } } }
"""


@pytest.mark.parametrize(
    ("daemon", "line"), [("frr", "router bgp 64512"), ("bird", "protocol bgp bgp_tor_2d_a {")]
)
def test_an_example_is_for_the_accepted_configuration_or_a_file(paths: Paths, daemon: str, line: str):
    """Both give the same kind of lines; the file needs no running appliance."""
    file = paths.runtime / "proposed.yaml"
    file.write_text(CONFIGURATION)
    proposed = ran(paths, "example", daemon, str(file))
    paths.accepted.write_bytes(encode(with_shared(by=bgp(neighbor(), engine=Engine.TABLE))))
    accepted = ran(paths, "example", daemon)
    for each in (proposed, accepted):
        assert each.exit_code == 0, each.stderr
        assert line in each.stdout.splitlines()
    assert "LB-web" in proposed.stdout or daemon == "bird"


@pytest.mark.parametrize(
    ("accepted", "said"),
    [(snapshot(), "no shared IPs are configured"), (with_shared(by=bgp()), "has no neighbours at this node")],
)
def test_an_example_needs_addresses_and_neighbours(paths: Paths, accepted: Snapshot, said: str):
    """Otherwise it says which is missing."""
    paths.accepted.write_bytes(encode(accepted))
    result = ran(paths, "example", "frr")
    assert result.exit_code == 1
    assert said in result.stderr


def test_the_router_id_is_this_node_s_address(paths: Paths):
    """With `auto` that towards its first router: a daemon might choose the shared address, which all have."""
    for address, code, said in (
        ("127.0.0.1", 0, " bgp router-id 127.0.0.1\n"),
        ("255.255.255.255", 1, "set `bgp.router_id`"),
    ):
        by = bgp(neighbor(address=address), router_id=None, engine=Engine.TABLE)
        paths.accepted.write_bytes(encode(with_shared(by=by)))
        result = ran(paths, "example", "frr")
        assert result.exit_code == code
        assert said in result.output


def test_an_example_of_a_wrong_file_is_refused(paths: Paths):
    """With the errors of that file."""
    file = paths.runtime / "proposed.yaml"
    file.write_text("bgp: { asn: 0 }\n")
    result = ran(paths, "example", "frr", str(file))
    assert result.exit_code == 1
    assert "asn" in result.stderr
