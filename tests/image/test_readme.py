"""The commands of docs/installing.md and image/README.md that are about containers, run word for word.

documents/test_container_commands.py has those that are not, each with its reason.
"""

import contextlib
import json
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from support.documents.pages import page, yaml_blocks
from support.machines.fresh_machine import FreshMachine, commands
from support.machines.podman import ROOT
from support.network.namespaces import Node, Segment
from support.peers.backend import Backend
from support.processes.waiting import wait_until
from support.values.certificates import issue

import appliance

pytestmark = [
    pytest.mark.image,
    pytest.mark.needs("podman", "runc", "mmdebstrap", "ip", root=True),
    pytest.mark.slow("builds the image on a fresh machine"),
]

_INSTALLING: Final = page("installing")
_OF_IMAGE: Final = (ROOT / "image" / "README.md").read_text()
_BUILD: Final = (
    "podman build --format docker -t lb-appliance \\\n"
    "    --label org.opencontainers.image.revision=$(git rev-parse --short HEAD) ."
)
_SERVERS: Final = ("34", "90", "99", "51", "52")
"""Of the example's network 10.0.0.0/24."""


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Node, Node]]:
    """The machine's place in the example's network, and a client's; the servers of the example are up."""
    files = issue(tmp_path_factory.mktemp("certificates"), "localhost")
    with Segment() as segment, contextlib.ExitStack() as stack:
        machine, client, servers = (segment.node(name) for name in ("machine", "client", "servers"))
        machine.ip("address", "add", "10.0.0.2/24", "dev", "eth0")
        servers.batch(*(f"address add 10.0.0.{each}/24 dev eth0" for each in _SERVERS))
        with servers.inside():
            for port, tls_port in ((80, 6443), (1936, 22623)):
                certificate = (files.chain, files.key)
                server = Backend(f"server-{port}", port=port, tls_port=tls_port, certificate=certificate)
                stack.enter_context(server)
        yield machine, client


@pytest.fixture(scope="module")
def machine(
    image: str, nodes: tuple[Node, Node], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FreshMachine]:
    """A machine with podman, the first configuration of docs/, and the image that is built there."""
    del image  # its layers are this build's
    with FreshMachine(tmp_path_factory.mktemp("machine"), nodes[0]) as fresh:
        fresh.configure(yaml_blocks("configuring")[0])
        built = fresh.run(_BUILD)
        assert "warning" not in (built.stdout + built.stderr).lower()
        yield fresh


def _becomes_well(machine: FreshMachine, status: str) -> None:
    wait_until(lambda: machine.run(status, check=False).returncode == 0, what=status, timeout=90.0, pause=0.5)


def _answer(nodes: tuple[Node, Node], port: int) -> bytes:
    """Return what a client of the API gets, through the appliance."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    machine, client = nodes
    with client.inside():
        plain = socket.create_connection((machine.address, port), timeout=10)
    with context.wrap_socket(plain) as connection:
        connection.sendall(b"who\n")
        return connection.recv(100)


@pytest.mark.promise("docs/installing.md", "the commands for a container work")
def test_readme(machine: FreshMachine, nodes: tuple[Node, Node]):
    """What "As a container" says builds, runs and says that all is well, and a client is served."""
    build, run, status = commands(_INSTALLING, "As a container")
    assert build == _BUILD
    labels = machine.run("podman image inspect --format '{{json .Labels}}' lb-appliance").stdout
    revision = machine.run("git rev-parse --short HEAD").stdout.strip()
    assert _versions(json.loads(labels)) == (appliance.__version__, revision)
    machine.run(run)
    _becomes_well(machine, status)
    assert _answer(nodes, 9445) == b"server-80\n"
    machine.run("podman rm --force --volumes --time 0 appliance")


def _versions(labels: dict[str, str]) -> tuple[str, str]:
    version, revision = (labels[f"org.opencontainers.image.{name}"] for name in ("version", "revision"))
    return version, revision


def test_readme_of_image(machine: FreshMachine, nodes: tuple[Node, Node]):
    """The commands of "podman" start, show, reload and stop it."""
    run, status, reload, stop = commands(_OF_IMAGE, "podman")
    machine.run(run)
    _becomes_well(machine, status)
    assert _answer(nodes, 9445) == b"server-80\n"
    assert "nchanged" in machine.run(reload).stdout
    machine.run(stop)
    ended = machine.run("podman inspect --format '{{.State.ExitCode}}' appliance").stdout.strip()
    assert ended == "0"
    machine.run("podman rm --force --volumes appliance")


def test_readme_of_an_upgrade(machine: FreshMachine, nodes: tuple[Node, Node], tmp_path: Path):
    """They start a release, then another one, and go back; only the runtime directory is the test's."""
    tmp_path.chmod(0o755)

    def here(command: str) -> str:
        given = command.replace("--volume /run/appliance:", f"--volume {tmp_path}/run:")
        return given.replace("-m 0700 /run/appliance", f"-m 0700 {tmp_path}/run")

    idle, folder, first, newer, wait, status, back, wait_again, *_ = commands(
        _OF_IMAGE, "An upgrade that ends nothing"
    )
    for version in ("0.1.0", "0.2.0"):
        machine.run(f"podman tag lb-appliance lb-appliance:{version}")
    for command in (idle, folder, first):
        machine.run(here(command))
    _becomes_well(machine, status.replace("0.2.0", "0.1.0"))
    machine.run(here(newer))
    assert machine.run(wait).stdout.strip() == "0"
    _becomes_well(machine, status)
    assert _answer(nodes, 9445) == b"server-80\n"
    machine.run(back)
    assert machine.run(wait_again).stdout.strip() == "0"
    _becomes_well(machine, status.replace("0.2.0", "0.1.0"))
    assert _answer(nodes, 9445) == b"server-80\n"
    for names in ("appliance-0.1.0 appliance-0.2.0", "appliance-pids"):  # which the others depend on
        machine.run(f"podman rm --force --volumes --time 0 {names}")


def test_both_build_the_same():
    """Both files say the same command to build."""
    assert commands(_OF_IMAGE, "Build")[0] == _BUILD


def test_a_machine_that_has_a_configuration_already(nodes: tuple[Node, Node], tmp_path: Path):
    """What this machine has in /etc/appliance is not on the one that a README is read on."""
    etc = tmp_path / "etc of this machine"
    (etc / "appliance").mkdir(parents=True)
    (etc / "appliance" / "appliance.yaml").write_text("this machine's")
    (etc / "appliance" / "stats.pass").touch()
    folder = tmp_path / "machine"
    folder.mkdir()
    with FreshMachine(folder, nodes[0], etc=etc) as fresh:
        fresh.configure("the README's")
        assert (
            fresh.run("cd /etc/appliance && ls && cat appliance.yaml").stdout
            == "appliance.yaml\nthe README's"
        )
    assert (etc / "appliance" / "appliance.yaml").read_text() == "this machine's"
