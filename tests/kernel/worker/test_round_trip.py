"""A haproxy.cfg at HAProxy, and what `import` makes of it at the appliance: both are asked the same.

HAProxy and the appliance run side by side, each in a node of its own, in front of the same servers. What is
compared: which address and port answers; which server does, in which shares, and whether a client stays with
one; the state of each server while servers are closed, not ready, or say something else; and that nobody, or
the backup, serves when no server is left. `E2E_FULL=1` takes every file of the corpus. How connections end is
in `tests/programs/worker/test_haproxy_endings.py`.
"""

import contextlib
import os
import re
import socket
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from support.network.namespaces import Node, Segment
from support.openshift.openshift_templates import RELEASES, haproxy_cfg
from support.peers.haproxy import HAProxy, accepts
from support.peers.server_farm import ServerFarm
from support.processes.waiting import Late, wait_until
from support.supervisor.appliance import Appliance
from support.translation.haproxy_files import NO_FILES
from support.translation.haproxy_variants import binds, runnable, servers, statistics
from support.values import certificates

from appliance.translation.haproxy.reader import translate
from appliance.translation.import_result import ImportResult, import_result

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "haproxy", root=True)]

_CORPUS: Final = Path(__file__).parents[2] / "translation" / "corpus" / "haproxy"
_FILES: Final = {
    **{path.stem: path.read_text() for path in sorted(_CORPUS.glob("*.cfg"))},
    **{f"openshift-{name}": haproxy_cfg(each) for name, each in RELEASES.items()},
}

HAPROXY_REFUSES: Final = {
    "doors-left-open",
    "everything-once",
    "http-beside-tcp-skip",
    "mongo-in-binary",
    "mysql-in-http-defaults",
    "okd-slip-in-a-time",
    "old-keywords",
    "openshift3-article",
    "patroni-by-port",
    "patroni-with-tls",
    "ports-and-names",
    "queues-in-containers",
    "relay-of-ports",
}
"""What HAProxy 2.6 does not take, if only for want of a certificate or a name: nothing is to be compared."""

WE_REFUSE: Final = {
    "http-mode",
    "mail-that-sticks-skip",
    "tcp-dialogue",
}
"""What has lines that mean nothing to a proxy of connections; their reports say so."""

_NOT_HERE: Final = {
    "galera-backups",
    "galera-by-command",
    "mail-and-directory",
    "redis-sentinel",
    "servers-by-name",
}
"""What needs a resolver, or other servers; `tests/net/probing/test_real_dialogues.py` has real ones."""

_ALWAYS: Final = (
    "openshift-4.22",
    "health-string",
    "monitor-fail",
    "several-defaults",
    "weights-and-backup",
)
_ONCE: Final = {text: name for name, text in reversed(_FILES.items())}
"""Releases of OpenShift that have the same file are compared once, by the oldest of them."""

_COMPARED: Final = [name for name in _ONCE.values() if name not in HAPROXY_REFUSES | WE_REFUSE | _NOT_HERE]
_CHOSEN: Final = _COMPARED if os.environ.get("E2E_FULL") == "1" else list(_ALWAYS)

_ASKED: Final = 24
"""Connections to each port: the shares of all pools here come out even after as many."""

_UNEVEN: Final = 3
"""Connections by which a server's share may differ."""

_NOTHING_HERE: Final = {"404": "nothing here", "503": "nothing here"}
"""What HAProxy and we answer at other paths than those of `monitor-uri`, and where its condition fails."""

_CHECKS: Final = 5
"""Checks of a server after which rise and fall are decided, whatever the file says of them."""

_REQUEST: Final = "GET {path} HTTP/1.0\r\n\r\n"
_CLIENT: Final = "192.0.2.150"
"""Where all questions come from, at both: what goes by the source is then the same."""


@pytest.mark.slow("load on a segment of its own")
def test_the_corpus_says_what_cannot_be_compared(tmp_path: Path):
    """Exactly the named files are not taken by HAProxy, and exactly the named ones by us."""
    refused = {name for name, text in _FILES.items() if not accepts(text, tmp_path)}
    ours = {name for name, text in _FILES.items() if not _imported(text).ok}

    assert (refused, ours - refused) == (HAPROXY_REFUSES, WE_REFUSE)


def _imported(text: str) -> ImportResult:
    return import_result([translate(text, source="haproxy.cfg", environment={}, read=NO_FILES)])


class Sides:
    """Servers, and HAProxy and the appliance before them, each in its node."""

    def __init__(self, segment: Segment, text: str, stack: ExitStack, directory: Path) -> None:
        self.text = runnable(text, control="{control}")
        self.binds = sorted(set(binds(self.text)) - statistics(self.text))
        self._watched: set[str] = set()
        self.different: dict[str, object] = {}
        behind, self.theirs, self.ours = (segment.node(name) for name in ("servers", "theirs", "ours"))
        endpoints = servers(self.text)
        for address in sorted({address for address, _ in endpoints}):
            behind.batch(f"address add {address}/{64 if ':' in address else 24} dev eth0")
        for node in (self.theirs, self.ours):
            own = {each for each, _ in self.binds if each and not each.startswith("127.")} | {_CLIENT}
            node.batch(*(f"address add {each} dev lo" for each in sorted(own)))
            node.batch(f"address add 2001:db8::ffff:{node.address.rpartition('.')[2]}/64 dev eth0")
        issued = certificates.issue(directory, "localhost")
        with behind.inside():
            self.farm = stack.enter_context(ServerFarm(endpoints, (issued.chain, issued.key)))
        imported = _imported(self.text)
        assert imported.ok, imported.problems
        with self.ours.inside():
            self.appliance = stack.enter_context(Appliance(_alone(yaml.safe_load(imported.yaml))))
        with self.theirs.inside():
            self.haproxy = stack.enter_context(HAProxy(self.text))

    def states(self) -> tuple[dict[str, str], dict[str, str]]:
        """Return the state of each server at HAProxy and at the appliance."""
        found = self.haproxy.states().items()
        # `disabled` servers never get a connection, and are left out of what `import` prints.
        theirs = {f"{pool}/{server}": state for (pool, server), state in found if state != "maint"}
        pools = self.appliance.status()["pools"]
        ours = {
            f"{pool['name']}/{server['name']}": str(server["state"])
            for pool in pools
            for server in pool["servers"]
        }
        return theirs, ours

    def behave(self, how: str, addresses: Sequence[str]) -> None:
        """Have servers behave, and return when both have seen it, and agree on every server."""
        counted = self.farm.connections()
        self.farm.behave(how, addresses)
        if how in {"closed", "well"}:
            state = {"closed": "down", "well": "up"}[how]
            wait_until(lambda: self._are(state, addresses), what=f"HAProxy says {state}", timeout=60)
        else:
            wait_until(lambda: self._checked(counted), what="all servers were checked often", timeout=60)
        self.wait_until_alike()

    def wait_until_checked(self) -> None:
        """Wait until both have checked all servers for the first time, and note which those are."""
        wait_until(self._first_checks, what="all servers were checked", timeout=60)
        self.wait_until_alike()
        self._watched = set(self.farm.connections())

    def _first_checks(self) -> bool:
        return all(
            row["check_status"] not in {"INI", "UNK"} for row in self.haproxy.rows() if row["type"] == "2"
        )

    def _are(self, state: str, addresses: Sequence[str]) -> bool:
        """Return whether HAProxy has this state for all that it checks at these addresses."""
        rows = (row for row in self.haproxy.rows() if row["check_status"])
        found = [row for row in rows if row["addr"].rpartition(":")[0].strip("[]") in addresses]
        return bool(found) and all(row["status"].lower() == state for row in found)

    def _checked(self, before: dict[str, int]) -> bool:
        now = self.farm.connections()
        return all(now[each] >= before[each] + _CHECKS for each in self._watched)

    def wait_until_alike(self) -> None:
        """Wait until both say the same of every server; what they say is shown where they never do."""
        with contextlib.suppress(Late):
            wait_until(self._alike, what="both have the same states", timeout=30)
        theirs, ours = self.states()
        assert ours == theirs

    def _alike(self) -> bool:
        theirs, ours = self.states()
        return theirs == ours

    def says_the_same(self) -> bool:
        """Ask both at every port and path, and return whether they answer alike; else `different` tells."""
        self.different = {}
        for path in ("/", *sorted(set(re.findall(r"monitor-uri\s+(\S+)", self.text)))):
            theirs, ours = self._asked(self.theirs, path), self._asked(self.ours, path)
            for place, said in theirs.items():
                if not _near(ours[place], said) and not _sticks(ours[place], said, self.text):
                    self.different[f"{place} {path}"] = (dict(ours[place]), dict(said))
        return not self.different

    def _asked(self, node: Node, path: str) -> dict[str, Counter[str]]:
        with node.inside():
            return {
                f"{name} {port}": _shares(address, port, path) for name, address, port in self._targets(node)
            }

    def _targets(self, node: Node) -> Iterator[tuple[str, str, int]]:
        """Yield every address that something may listen at, by a name that is the same on both nodes."""
        every = {"one address": node.address, "an IPv6 address": node.address6, "localhost": "127.0.0.1"}
        for _, port in self.binds:
            specific = {address: address for address, _ in self.binds if address}
            for name, address in {**every, **specific}.items():
                yield name, address, port


def _alone(config: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration with one worker for each group: shares come out even in one process."""
    for group in ("api", "ingress"):
        if group in config:
            config[group]["workers"] = 1
    return config


def _shares(address: str, port: int, path: str) -> Counter[str]:
    """Return what was answered how often; a port that refuses is asked once."""
    first = _ask(address, port, path)
    if first == "refused":
        return Counter([first])
    return Counter([first, *(_ask(address, port, path) for _ in range(_ASKED - 1))])


def _ask(address: str, port: int, path: str) -> str:
    """Return the status and the server of one answer, or that there was none."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as connection:
        connection.settimeout(20)
        try:
            if family == socket.AF_INET and not address.startswith("127."):
                connection.bind((_CLIENT, 0))
            connection.connect((address, port))
            connection.sendall(_REQUEST.format(path=path).encode())
            said = b"".join(iter(lambda: connection.recv(65536), b"")).decode(errors="replace")
        except ConnectionRefusedError:
            return "refused"
        except ConnectionError:
            return "closed"
    if not said:
        return "closed"
    head, _, body = said.partition("\r\n\r\n")
    status = head.split()[1]
    if body.startswith(("ok ", "no ")):
        return f"{status} {body.split(maxsplit=1)[1].strip()}"
    return _NOTHING_HERE.get(status, status)


@pytest.mark.slow("a real HAProxy and the appliance, for each file")
@pytest.mark.promise("docs/foreign-files.md", "the same haproxy.cfg: HAProxy and we answer the same")
@pytest.mark.parametrize("name", _CHOSEN)
def test_both_answer_the_same(name: str, tmp_path: Path):
    """Ports, servers, shares and health states are the same, with good servers and with bad ones."""
    with ExitStack() as stack:
        sides = Sides(stack.enter_context(Segment()), _FILES[name], stack, tmp_path)
        first, *others = sorted({address for address, _ in servers(sides.text)})
        sides.wait_until_checked()
        assert_same(sides)
        for how, addresses in (
            ("closed", [first]),
            ("well", [first]),
            ("unready", [first]),
            ("wrong", [first]),
            ("closed", [first, *others]),
            ("well", [first, *others]),
        ):
            sides.behave(how, addresses)
            assert_same(sides)


def assert_same(sides: Sides) -> None:
    """Compare what both say at every port, and at the paths that they answer themselves.

    Who comes back gets its share a little later, at each of them in its own way: both are asked until they
    say the same.
    """
    with contextlib.suppress(Late):
        wait_until(sides.says_the_same, what="the same answers", timeout=30)
    assert sides.different == {}, "ours and theirs"


def _near(one: Counter[str], other: Counter[str]) -> bool:
    """Return whether the same has answered in the same shares: a round may have begun at another place."""
    return set(one) == set(other) and all(abs(one[each] - other[each]) <= _UNEVEN for each in one)


def _sticks(one: Counter[str], other: Counter[str], text: str) -> bool:
    """Return whether one server has answered all, at both, where it goes by the client's address.

    Which one it is depends on how an address is hashed, which nobody promises.
    """
    served = all(len(each) == 1 and re.match(r"\d+ \S", next(iter(each))) for each in (one, other))
    return "balance source" in text and served
