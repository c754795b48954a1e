"""Makes `tests/support` importable, and decides where a test runs and what happens without what it needs."""

import gc
import os
import signal
import sys
from pathlib import Path

import pytest
import structlog
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

from support.run import (
    claims,
    compiled_package,
    layers,
    tiers,
    tools,  # needs the line above
)
from support.run.own_network import OwnNetwork  # needs the line above

# Property tests have no deadline: other programs may have the machine. In the short tiers each run has the
# same examples: so few of them, drawn anew, would cover other lines each time.
settings.register_profile(
    "patient",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    max_examples=tiers.examples(100),
    derandomize=tiers.is_short(),
)
settings.load_profile("patient")

_times = layers.Times()
_said = layers.Said()
_claims = claims.Claims()
_network = pytest.StashKey[OwnNetwork]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let `make fuzz` say how much is fuzzed, and `make test-compiled` which package is tested."""
    parser.addoption(
        "--fuzz-seconds", default=tiers.fuzz_seconds(), help="seconds for each target in tests/fuzz"
    )
    parser.addoption("--compiled", action="store_true", help="the package has its data path compiled")
    parser.addoption("--fuzz-seed", default="1", help="where their inputs begin: a number, or `random`")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Describe the markers that this file gives a meaning, and make the network that tests run in."""
    config.addinivalue_line(
        "markers", "needs(*tools, root=False): programs, and rights, without which the test cannot run"
    )
    # In the background of a shell SIGINT is ignored, and so it would be by programs that a test interrupts.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Without bytecode every program that a test starts would compile all sources again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    if config.getoption("--compiled"):
        compiled_package.check()
    terminal = config.pluginmanager.getplugin("terminalreporter")
    if terminal is not None and getattr(config.option, "numprocesses", None):
        config.pluginmanager.register(layers.Failures(terminal))
    if OwnNetwork.possible():
        config.stash[_network] = OwnNetwork()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what runs again with the compiled package, by its room, and note the layer."""
    layers.mark(item)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files that have no test of the layer that is asked for: importing them takes long."""
    if not collection_path.match("test_*.py"):
        return None
    return layers.leaves_out(config.option.markexpr, collection_path.read_text()) or None


def pytest_collection_finish() -> None:
    """Let no collection of garbage look again at what lives until the end: tests, and what they import."""
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let the layers that take longest start first, and measure coverage where it is for something."""
    layers.longest_first(items)
    if config.pluginmanager.hasplugin("_cov"):
        layers.without_coverage(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> layers.SideBySide:
    """Say which tests may run side by side, with `-n`."""
    return layers.SideBySide(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose needs are not met, or fail it where they could have been; else go where it runs.

    Logging is as structlog has it from the start, whatever a test before has made of it in this process.
    """
    structlog.reset_defaults()
    _claims.hold(layers.layer_of(item))
    for marker in item.iter_markers("needs"):
        objection = tools.objection(marker.args, root=marker.kwargs.get("root", False))
        if objection is None:
            continue
        if tools.must_be_complete():
            pytest.fail(f"{objection}, and this is a complete CI run", pytrace=False)
        pytest.skip(objection)
    if item.get_closest_marker("kernel") and not tools.is_root():
        pytest.skip("needs root: network namespaces")
    if network := item.config.stash.get(_network, None):
        # The image is built with packages, which only the machine's own network reaches.
        (network.leave if item.get_closest_marker("image") else network.enter)()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note how long a test took, and what it says at the end of the run."""
    _times.add(report)
    _said.add(report)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show what tests have to say whether they fail or not, and how long each layer took."""
    for line in (*_said.lines(), *_times.lines()):
        terminalreporter.write_line(line)
