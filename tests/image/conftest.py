"""The image under test, built once, and what stands around its containers."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.machines import podman
from support.machines.container_site import Site, site

import appliance


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show what was measured."""
    for figure in podman.figures:
        terminalreporter.write_line(f"image: {figure}")


@pytest.fixture(scope="session")
def image() -> str:
    """The image of this checkout."""
    seconds = podman.build_image()
    podman.measured(f"{podman.size() / 1e6:.0f} MB, built in {seconds:.0f} s (less where layers were there)")
    return podman.IMAGE


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of this checkout that `make dist` makes."""
    place = tmp_path_factory.mktemp("dist")
    made = ["make", "dist", f"DIST={place}", f"VENV={place}/venv", f"PYTHON={sys.executable}"]
    subprocess.run(made, cwd=podman.ROOT, check=True, capture_output=True)
    return place / f"lb-appliance-{appliance.__version__}.tar.gz"


@pytest.fixture
def around(image: str, tmp_path: Path) -> Iterator[Site]:
    """Two nodes for containers, one with two servers, and a client, on a segment of their own."""
    del image
    with site(tmp_path) as made:
        yield made
