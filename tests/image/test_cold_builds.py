"""Two builds of the same commit that share nothing but the base are equal, bit by bit."""

import hashlib
import os
from pathlib import Path

import pytest
from support.machines import podman

pytestmark = [
    pytest.mark.image,
    pytest.mark.needs("podman", "runc", "mmdebstrap", root=True),
    pytest.mark.skipif(not os.environ.get("E2E_FULL"), reason="make image-full: minutes for each build"),
    pytest.mark.slow("builds everything without a cache"),
]

_NAMES = ("localhost/lb-cold-1", "localhost/lb-cold-2")


def test_container():
    """The layers are equal."""
    first, second = (podman.make_image(name, "--no-cache") for name in _NAMES)
    assert first[1] == second[1]


def test_container_in_the_format_of_oci():
    """Its id is equal too: podman 4.3 writes the name of the build's own container into Docker's format."""
    first, second = (podman.make_image(name, "--no-cache", "--format", "oci") for name in _NAMES)
    assert first == second


def test_virtual_machine(tmp_path: Path):
    """The whole archive is."""
    digests = set()
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        podman.make_ova(folder, "--no-cache")
        (ova,) = folder.iterdir()
        digests.add(hashlib.sha256(ova.read_bytes()).hexdigest())
    assert len(digests) == 1
