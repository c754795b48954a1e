"""`appliance demo --pair`: what it prints, typed in a second terminal."""

import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, Self

import pytest
from support.machines import nobody
from support.processes.processes import end
from support.processes.waiting import patient, wait_until

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.needs("ip", "curl", "nft", "setpriv", "unshare", "nsenter", root=True),
    pytest.mark.slow("two whole appliances on a segment of their own"),
]

_COMMAND: Final = [sys.executable, "-m", "appliance.console", "demo", "--pair"]
_MARK: Final = "while on client curl"
_ASKED: Final = "on client curl -sk -m 5 https://192.0.2.200:6443/readyz"


def _as_user(words: Sequence[str]) -> list[str]:
    return nobody.command(words)


class Pair:
    """A demo whose output goes to a file; `whose` makes a command one of its user."""

    def __init__(self, folder: Path, whose: Callable[[Sequence[str]], list[str]]) -> None:
        self._output = folder / "demo.out"
        self.whose = whose
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                whose(_COMMAND), stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )

    def __enter__(self) -> Self:
        for node in ("lb-0", "lb-1"):
            wait_until(lambda node=node: self._is_well(node), what=f"{node} is well", timeout=90.0)
        wait_until(self.holder, what="one has the address", timeout=30.0)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            sys.stderr.write(self.text())
        end(self.process, patience=patient(90.0))

    @property
    def root(self) -> Path:
        """Its directory, as it prints it."""
        found = re.search(r"^  \. (.+)/env$", self.text(), re.MULTILINE)
        assert found, self.text()
        return Path(found[1])

    def text(self) -> str:
        """Return what it has printed."""
        return self._output.read_text()

    def advised(self) -> list[str]:
        """Return the commands that it prints, in their order, without those that begin a terminal."""
        [advice] = re.findall(r"In a second terminal.*?^Logs:", self.text(), re.MULTILINE | re.DOTALL)
        lines = [re.sub(r" +#.*", "", each).strip() for each in advice.splitlines() if each.startswith("  ")]
        return [each for each in lines if each and not each.startswith(". ")]

    def run(self, line: str) -> "subprocess.CompletedProcess[str]":
        """Run a line in a second terminal."""
        return subprocess.run(
            self.whose(["bash", "-c", f". {self.root}/env && {line}"]),
            capture_output=True,
            text=True,
            timeout=patient(120),
            check=False,
        )

    def type(self, line: str) -> str:
        """Run a line, which succeeds, and return what it prints."""
        done = self.run(line)
        assert done.returncode == 0, f"{line}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def holder(self) -> str:
        """Return which node has the address, "" for none or both."""
        found = [
            node
            for node in ("lb-0", "lb-1")
            if "192.0.2.200/" in self.run(f"on {node} ip -o address show dev eth0").stdout
        ]
        return found[0] if len(found) == 1 else ""

    def _is_well(self, node: str) -> bool:
        assert self.process.poll() is None, self.text()
        return f"{node}: appliance: all is well" in self.text()


class Asking:
    """The line that asks all the time, in a terminal of its own."""

    def __init__(self, pair: Pair, line: str, folder: Path) -> None:
        self._answers, self._errors = folder / "answers", folder / "errors"
        with self._answers.open("wb") as answers, self._errors.open("wb") as errors:
            self.process = subprocess.Popen(
                pair.whose(["bash", "-c", f". {pair.root}/env && {line}"]),
                stdout=answers,
                stderr=errors,
                start_new_session=True,
            )

    def count(self) -> int:
        """Return how many answers have come."""
        return self._answers.read_text().count("ok master-")

    def wait_for_more(self) -> None:
        """Return when some more have come, or the line has ended with an error."""
        wanted = self.count() + 10
        wait_until(
            lambda: self.count() >= wanted or self.process.poll() is not None, what="answers", timeout=60.0
        )
        assert self.process.poll() is None, self._errors.read_text()


@pytest.fixture(params=[list, _as_user], ids=["root", "user"])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pair]:
    """Run one, as root and as an ordinary user."""
    tried = subprocess.run(_as_user(["unshare", "--user", "true"]), capture_output=True, check=False)
    if request.param is _as_user and tried.returncode:
        pytest.skip("this machine gives users no namespaces")
    with Pair(tmp_path, request.param) as running:
        yield running


@pytest.mark.promise("docs/getting-started.md", "the demo of a pair does what it says")
def test_what_it_prints(pair: Pair, tmp_path: Path):
    """Each does what is said beside it: no request fails until a node is lost, and nothing is left."""
    lines = pair.advised()
    asking = Asking(pair, next(each for each in lines if each.startswith(_MARK)), tmp_path)
    holders = {"on lb-0 appliance vip move cluster": "lb-1", "on lb-0 appliance vip reclaim cluster": "lb-0"}
    for line in lines:
        if line.startswith(_MARK):
            asking.wait_for_more()
        elif line.startswith("on lb-0 ip link"):
            pair.type(line)
        elif line.startswith(("appliance fleet status", "on lb-0 appliance status")):
            wait_until(lambda line=line: pair.run(line).returncode == 0, what=line, timeout=90.0, pause=0.5)
        elif line.startswith("curl "):
            assert "<title>" in pair.type(line)
        else:
            pair.type(line)
            if line in holders:
                wait_until(lambda line=line: pair.holder() == holders[line], what=line, timeout=30.0)
            if asking.process.poll() is None:
                asking.wait_for_more()
        if line.endswith("eth0 down"):
            wait_until(lambda: pair.run(_ASKED).stdout.startswith("ok"), what="lb-1 serves", timeout=60.0)
    assert len(lines) > 10
    root = pair.root
    pair.process.send_signal(signal.SIGINT)
    assert pair.process.wait(patient(120)) == 0
    assert not root.exists()
    left = subprocess.run(["ip", "netns", "list"], check=True, capture_output=True, text=True).stdout
    assert f"lb-demo-{pair.process.pid}-" not in left
