"""The files that come with the pods of `image/`, rendered as OpenShift's programs render them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from support.values.go_template import render

IMAGE: Final = Path(__file__).parents[3] / "image"
HAPROXY: Final = IMAGE / "haproxy-pod.appliance.yaml.tmpl"
HAPROXY_SEED: Final = IMAGE / "haproxy-pod.seed.yaml"


def haproxy_place(masters: Mapping[str, str], *, frontend: str = "") -> str:
    """Return what `monitor` makes of our template; `frontend` is "::" where the virtual IP is IPv6."""
    backends = [{"Host": name, "Address": address, "Port": 6443} for name, address in masters.items()]
    config = {
        "ApiPort": 6443,
        "LbPort": 9445,
        "StatPort": 29445,
        "Backends": backends,
        "FrontendAddr": frontend,
    }
    return render(HAPROXY.read_text(), {"LBConfig": config})
