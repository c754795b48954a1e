"""`appliance demo --pair`: two nodes with a virtual IP, masters and routers, in network namespaces."""

import contextlib
import os
import secrets
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from rich.console import Console

from appliance.console.demo.demo_site import CERTIFICATE, certify, short_directory
from appliance.console.demo.page_relay import listener
from appliance.console.demo.pair_network import (
    PairNetwork,
    become_root,
    entered,
    given_to_root,
    pair_network,
)
from appliance.console.demo.stop_signal import END_SECONDS, KILL_SECONDS, ORPHAN_SECONDS, StopSignal
from appliance.console.program_questions import interrupt_quietly
from appliance.console.status.status_changes import Facts, changed_facts, facts
from appliance.core.status.assessment import assess
from appliance.model.paths import Paths
from appliance.net.files.packaged import packaged
from appliance.net.observing.observation import observe
from appliance.net.process import python, subreaper
from appliance.net.process.prctl import die_with

NODES: Final = ("lb-0", "lb-1")
VIRTUAL_IP: Final = "192.0.2.200"
_MASTERS: Final = {f"master-{each}": f"192.0.2.{11 + each}" for each in range(3)}
_ROUTERS: Final = {f"router-{each}": f"192.0.2.{21 + each}" for each in range(2)}
_MACHINES: Final = {
    "lb-0": ("192.0.2.2",),
    "lb-1": ("192.0.2.3",),
    "client": ("192.0.2.9",),
    **{name: (address,) for name, address in (_MASTERS | _ROUTERS).items()},
}
_PAGE: Final = 8404
_REFRESH: Final = 1.0
_POLL: Final = 0.05
_ON: Final = """\
#!/bin/sh
# on MACHINE COMMAND...: run a command on one of the machines of the demo.
name=$1; shift
[ ! -f {root}/$name/env ] || . {root}/$name/env
exec {ip} netns exec {prefix}-$name "$@"
"""
_SSH: Final = """\
#!/bin/sh
# In place of the client of OpenSSH, for the fleet commands: leads to the nodes of the demo.
while [ "$1" != -- ]; do shift; done
name=$2; shift 2
exec {root}/bin/on "$name" sh -c "$*"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairSite:
    """The directory of one demo; `file` is what is pushed to both nodes."""

    root: Path
    network: PairNetwork

    @property
    def file(self) -> Path:
        """The one file of both nodes."""
        return self.root / "appliance.yaml"

    def paths(self, node: str) -> Paths:
        """Return the paths of a node."""
        folder = self.root / node
        return Paths(config=folder / "appliance.yaml", runtime=folder / "run", state=folder / "state")

    def environment(self, node: str) -> dict[str, str]:
        """Return the environment in which the appliance of a node runs, and commands to it."""
        return {**self.paths(node).environment(), "APPLIANCE_NODE": node}


def advice(made: PairSite, pages: Mapping[str, int]) -> str:
    """Return the text on what the operator can try; `pages` are the ports of the nodes' pages."""
    return f"""\
Two nodes, three masters and two routers, each in a network namespace. In a second terminal, as the same user:

  . {made.root}/env
  on client curl -sk https://{VIRTUAL_IP}:6443/readyz
  appliance fleet status
  while on client curl -sSk -m 5 https://{VIRTUAL_IP}:6443/readyz; do sleep .1; done
                                        # leave it running; in a third one,
                                        # after the first line again:
    on lb-0 appliance vip move cluster       # the address moves: no request fails
    on lb-0 appliance vip reclaim cluster    # and comes back
    appliance fleet drain masters/master-1   # on both nodes
    appliance fleet ready masters/master-1
    sed -i 's/workers: 1/workers: 2/' $APPLIANCE_CONFIG
    appliance fleet push $APPLIANCE_CONFIG   # both nodes accept it, or none
    on lb-0 ip link set eth0 down            # a node is lost: lb-1 serves after some seconds
    on lb-0 ip link set eth0 up
  on lb-0 appliance status              # and live: on lb-0 appliance top
  curl http://localhost:{pages["lb-0"]}/haproxy_stats   # the page of lb-0, for your browser, and of lb-1:
  curl http://localhost:{pages["lb-1"]}/haproxy_stats

Logs: {made.root}/lb-0/log and {made.root}/lb-1/log    Ctrl-C here ends it all.
"""


def run_pair(console: Console, stop: StopSignal) -> bool:
    """Run the pair until it is stopped; False if a node has ended by itself; raises DemoError."""
    listening = _listeners()
    if os.geteuid() != 0:
        become_root(
            python.command("appliance.console", "demo", "--pair"), [each.fileno() for each in listening]
        )
    subreaper.become_subreaper()  # so that no process stays even if a supervisord was killed
    with _site() as made, _processes(made, stop) as nodes:
        console.print(advice(made, _pages(made, listening)), markup=False, soft_wrap=True)
        return _watch(made, nodes, stop, console)


@contextlib.contextmanager
def _site() -> Iterator[PairSite]:
    with (
        pair_network(_MACHINES) as network,
        tempfile.TemporaryDirectory(prefix="lb-demo-", dir=short_directory()) as name,
    ):
        made = PairSite(root=Path(name), network=network)
        _write(made)
        yield made


def _write(made: PairSite) -> None:
    """Write the configuration of both nodes, keys, certificates, and the commands of the second terminal."""
    certify(made.root)
    (made.root / "linger.key").write_text(secrets.token_hex(32))
    made.file.write_text(packaged("demo-pair.yaml").read_text().replace("ROOT", str(made.root)))
    for node in NODES:
        (made.root / node).mkdir()
        made.paths(node).config.write_bytes(made.file.read_bytes())
        (made.root / node / "env").write_text(_exports(made.environment(node)))
    commands = made.root / "bin"
    commands.mkdir()
    ip = " ".join([*entered(os.getpid()), made.network.inside("client")[0]])
    prefix = made.network.namespace("client").removesuffix("-client")
    for name, text in {"on": _ON, "ssh": _SSH}.items():
        (commands / name).write_text(text.format(root=made.root, ip=ip, prefix=prefix))
        (commands / name).chmod(0o755)
    nowhere = {**Paths(config=made.file, runtime=made.root / "none", state=made.root / "none").environment()}
    path = f'export PATH={commands}:{shlex.quote(str(Path(sys.executable).parent))}:"$PATH"\n'
    (made.root / "env").write_text(f"# For a shell that is to talk to the demo.\n{_exports(nowhere)}{path}")


def _exports(variables: Mapping[str, str]) -> str:
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())


@contextlib.contextmanager
def _processes(made: PairSite, stop: StopSignal) -> Iterator[dict[str, "subprocess.Popen[bytes]"]]:
    """Run servers and nodes until the `with` block ends."""
    nodes: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for name, address in _MASTERS.items():
            _start(made, name, _server(made, name, "--https", f"{address}:6443"))
        for name, address in _ROUTERS.items():
            clear = ["--http", f"{address}:80", "--http", f"{address}:1936"]
            _start(made, name, _server(made, name, *clear))
        for name in NODES:
            command = python.command("appliance.console", "run", "--user", "root")
            nodes[name] = _start(made, name, command, environment=made.environment(name))
        yield nodes
    finally:
        _end(nodes, stop)


def _server(made: PairSite, name: str, *words: str) -> list[str]:
    certificate = ["--certificate", str(made.root / CERTIFICATE), "--delay", "0"]
    return python.command("appliance.console.demo.demo_backend", name, *words, *certificate)


def _listeners() -> list[socket.socket]:
    """Return a listening socket for the page of each node, in the network of the terminal."""
    if given := given_to_root():
        return [socket.socket(fileno=each) for each in given]
    return [listener(_PAGE + number) for number, _ in enumerate(NODES)]


def _pages(made: PairSite, listening: Sequence[socket.socket]) -> dict[str, int]:
    """Lead connections to the pages of the nodes, and return the ports by node."""
    found: dict[str, int] = {}
    for node, each in zip(NODES, listening, strict=True):
        found[node] = each.getsockname()[1]
        words = (str(each.fileno()), str(_PAGE))
        command = python.command("appliance.console.demo.page_relay", *words)
        _start(made, node, command, given=(each.fileno(),))
        each.close()
    return found


def _start(
    made: PairSite,
    machine: str,
    command: list[str],
    *,
    environment: Mapping[str, str] | None = None,
    given: tuple[int, ...] = (),
) -> "subprocess.Popen[bytes]":
    folder = made.root / machine
    folder.mkdir(exist_ok=True)
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(  # noqa: S603  # our own command
            [*made.network.inside(machine), *command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={**os.environ, **(environment or {})},
            pass_fds=given,
            start_new_session=True,  # Ctrl-C of the terminal is for us
            preexec_fn=partial(die_with, os.getpid(), signal.SIGTERM),  # noqa: PLW1509  # no threads yet, and prctl is all it does
        )


def _end(nodes: Mapping[str, "subprocess.Popen[bytes]"], stop: StopSignal) -> None:
    """Stop the nodes in order, the backup first, or at once at the second signal; then end the rest."""
    deadline = time.monotonic() + END_SECONDS
    for each in reversed(list(nodes.values())):
        if each.poll() is None:
            each.terminate()
        while each.poll() is None and not stop.at_once.is_set() and time.monotonic() < deadline:
            stop.at_once.wait(timeout=_POLL)
    subreaper.end_children(patience=ORPHAN_SECONDS, last_patience=KILL_SECONDS)


def _watch(
    made: PairSite, nodes: Mapping[str, "subprocess.Popen[bytes]"], stop: StopSignal, console: Console
) -> bool:
    """Print each change of a node's status as a line."""
    interrupt_quietly()
    known: dict[str, Facts] = {node: {} for node in nodes}
    while all(each.poll() is None for each in nodes.values()):
        for node in nodes:
            if made.paths(node).supervisor_socket.exists():  # before that there is nothing to show
                now = facts(assess(observe(made.paths(node)), time.time()))
                for line in changed_facts(known[node], now):
                    console.print(f"{time.strftime('%H:%M:%S')} {node}: {line}", markup=False, soft_wrap=True)
                known[node] = now
        if stop.asked.wait(timeout=_REFRESH):
            console.print("Stopping both nodes. Ctrl-C again ends all at once.")
            return True
    for node, each in nodes.items():
        if each.poll() is not None:
            console.print(f"{node} has ended, with status {each.returncode}: {made.root / node / 'log'}")
    return False
