"""The layers of tests: which one a test is of, what may run beside what, how long it took, what it says."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import pytest
from xdist.scheduler import LoadScopeScheduling

LAYERS: Final = ("pure", "sockets", "programs", "kernel", "image")
"""The markers that name a layer; each needs more of the machine than the one before."""


def layer_of(item: pytest.Item) -> str:
    """Return the layer of a test by its markers, the one that needs most where a file and a test name two.

    Raises UsageError for a test of no layer: no target of the Makefile would ever run it.
    """
    found = [layer for layer in LAYERS if item.get_closest_marker(layer)]
    if not found:
        raise pytest.UsageError(f"{item.nodeid} has none of the markers {', '.join(LAYERS)}")
    return found[-1]


DATA_PATH: Final = ("tests/worker/relay/", "tests/core/balancing/", "tests/programs/worker/")
"""The rooms whose tests run again with the package compiled; others of the data path have the marker."""


def mark(item: pytest.Item) -> None:
    """Give a test of these rooms the marker `data_path`, and let its reports name its layer.

    What is too slow for `make test-all` is `slow` as well.
    """
    if (full := item.get_closest_marker("full")) is not None:
        item.add_marker(pytest.mark.slow(*full.args))
    if item.nodeid.startswith(DATA_PATH):
        item.add_marker("data_path")
    item.user_properties.append(("layer", layer_of(item)))


def leaves_out(expression: str, text: str) -> bool:
    """Return whether `-m expression` takes no test of a file with this text, so that it need not be imported.

    Known of a layer, and of `not` one (`and not slow` or `full`): files name the layers that they have.
    """
    match expression.split():
        case [layer] if layer in LAYERS:
            wanted = {layer}
        case ["not", layer] | ["not", layer, "and", "not", "slow" | "full"] if layer in LAYERS:
            wanted = {*LAYERS} - {layer}
        case _:
            return False
    named = {layer for layer in LAYERS if f"mark.{layer}" in text}
    return bool(named) and not named & wanted


def longest_first(items: list[pytest.Item]) -> None:
    """Order tests so that a layer that takes long does not start last, alone."""
    items.sort(key=lambda item: -LAYERS.index(layer_of(item)))


def without_coverage(items: Iterable[pytest.Item]) -> None:
    """Leave what is fuzzed out of coverage: the lines that it reaches have tests of their own."""
    for item in items:
        if item.nodeid.startswith("tests/fuzz/"):
            item.add_marker("no_cover")


class SideBySide(LoadScopeScheduling):
    """Which tests stay in one process: those of one file, which share fixtures, or of a folder of the image.

    Such a folder shares an image or an archive that takes long to make. What is fuzzed shares nothing.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        if file.startswith("tests/fuzz/"):
            return nodeid
        return file.rpartition("/")[0] if file.startswith("tests/image/") else file


@dataclass(slots=True)
class _Spent:
    tests: int = 0
    work: float = 0.0
    first: float = field(default=float("inf"))
    last: float = 0.0

    @property
    def wall(self) -> float:
        return self.last - self.first


class Times:
    """How long each layer took: the sum of its tests' times, and from the first start to the last end."""

    def __init__(self) -> None:
        self._spent: dict[str, _Spent] = {}

    def add(self, report: pytest.TestReport) -> None:
        """Count one phase (set-up, call, tear-down) of one test; what crashed has no layer in its report."""
        layer = dict(report.user_properties).get("layer")
        if layer is None:
            return
        spent = self._spent.setdefault(str(layer), _Spent())
        spent.tests += report.when == "setup"
        spent.work += report.duration
        spent.first, spent.last = min(spent.first, report.start), max(spent.last, report.stop)

    def lines(self) -> list[str]:
        """Return one line for each layer that ran."""
        return [
            f"layer {layer}: {spent.tests} tests, {spent.work:.0f} s of work in {spent.wall:.0f} s"
            for layer, spent in sorted(self._spent.items(), key=lambda each: LAYERS.index(each[0]))
        ]


class Failures:
    """Names each failure as it comes, if tests run side by side: a run that is stopped has named them too."""

    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        self._terminal = terminal

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write a line for a test that failed."""
        if report.failed:
            self._terminal.ensure_newline()
            self._terminal.write_line(f"FAILED at {report.when}: {report.nodeid}", red=True)


class Said:
    """What tests say at the end of the run, by `record_property("said", ...)`."""

    def __init__(self) -> None:
        self._lines: dict[str, None] = {}

    def add(self, report: pytest.TestReport) -> None:
        """Note the lines of one test, each once, in whichever process it ran."""
        self._lines.update((str(line), None) for name, line in report.user_properties if name == "said")

    def lines(self) -> list[str]:
        """Return them in the order in which they came."""
        return list(self._lines)
