"""Files that come with the package."""

import pytest

from appliance.net.files.packaged import packaged

pytestmark = pytest.mark.sockets


def test_supervisord_s_configuration_is_found():
    """It is there and names every program."""
    text = packaged("supervisord.conf").read_text()
    for program in ("reload", "health", "proxy-api", "proxy-ingress", "stats", "vrrp"):
        assert f"[program:{program}]" in text
