"""The container on another base, made of an archive: image/README.md, RHEL-like machines, and UBI."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.machines import podman
from support.machines.container_site import VIP, Site, site

pytestmark = [
    pytest.mark.image,
    pytest.mark.needs("podman", "runc", "mmdebstrap", "ip", root=True),
    pytest.mark.slow("makes the archive, and an image of it"),
]

_NAME = "localhost/lb-from-archive:test"


@pytest.fixture
def around(dist: Path, tmp_path: Path) -> Iterator[Site]:
    """Give two nodes, servers and a client; the image is there."""
    podman.build_from_archive(dist, _NAME)
    with site(tmp_path) as made:
        yield made
    podman.remove_image(_NAME)


def test_it_serves_as_the_image_of_a_release_does(around: Site):
    """With the settings of the unit: read-only, as its user, with a virtual IP and a health check."""
    node = around.one
    with around.container(node, config=around.write(around.config()), image=_NAME) as container:
        around.serves(node.address)
        around.serves(VIP)
        assert container.exec("appliance", "alive").returncode == 0
        assert container.exec("id", "-u").stdout.strip() == "9445"
        assert container.exec("sh", "-c", "! touch /etc/appliance/x /opt/x", check=False).returncode == 0
