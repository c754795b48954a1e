"""The image under test, built once, and what stands around its containers."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.machines import podman
from support.machines.container_site import Site, site


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


@pytest.fixture
def around(image: str, tmp_path: Path) -> Iterator[Site]:
    """Two nodes for containers, one with two servers, and a client, on a segment of their own."""
    del image
    with site(tmp_path) as made:
        yield made
