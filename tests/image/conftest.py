"""The image under test, built once, and what stands around its containers."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import podman
from support.container_site import Site, site


@pytest.fixture(scope="session")
def image(pytestconfig: pytest.Config) -> str:
    """The image of this checkout."""
    seconds = podman.build_image()
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled():
        sys.stdout.write(f"\nimage: {podman.size() / 1e6:.0f} MB, built in {seconds:.0f} s\n")
    return podman.IMAGE


@pytest.fixture
def around(image: str, tmp_path: Path) -> Iterator[Site]:
    """Two nodes for containers, one with two servers, and a client, on a segment of their own."""
    del image
    with site(tmp_path) as made:
        yield made
