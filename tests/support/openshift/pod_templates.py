"""The files that come with the pods of `image/`, rendered as OpenShift's programs render them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from support.openshift.go_template import Value, render
from support.openshift.openshift_templates import Release, haproxy_cfg

from appliance.model.router_ids import router_ids

IMAGE: Final = Path(__file__).parents[3] / "image"
HAPROXY: Final = IMAGE / "haproxy-pod.appliance.yaml.tmpl"
KEEPALIVED: Final = IMAGE / "keepalived-pod.appliance.yaml.tmpl"


def haproxy_place(masters: Mapping[str, str], *, frontend: str = "", template: str | None = None) -> str:
    """Return what `monitor` makes of a template, ours; `frontend` is "::" where the virtual IP is IPv6."""
    backends = [{"Host": name, "Address": address, "Port": 6443} for name, address in masters.items()]
    config = {
        "ApiPort": 6443,
        "LbPort": 9445,
        "StatPort": 29445,
        "Backends": backends,
        "FrontendAddr": frontend,
    }
    return render(template or HAPROXY.read_text(), {"LBConfig": config})


def openshifts_haproxy_template(release: Release) -> str:
    """Return the template of a release, of which `monitor` makes what `haproxy_cfg` returns."""
    text = haproxy_cfg(release, ("MASTER",)).replace("server master-0 MASTER:6443", f"server {_SERVER}")
    text = text.replace("frontend  main\n", "{{- if gt (len .LBConfig.Backends) 0 }}\nfrontend  main\n")
    text = text.replace("listen stats\n", "{{- end }}\nlisten stats\n")
    head, server = text.split(f"   server {_SERVER}")
    return f"{head}{{{{- range .LBConfig.Backends }}}}\n   server {_SERVER}{server}{{{{- end }}}}\n"


_SERVER: Final = "{{ .Host }} {{ .Address }}:{{ .Port }}"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepalivedNode:
    """What `dynkeepalived` knows on one node: its `own` address, and those of masters and of all nodes."""

    own: str = "192.0.2.1"
    masters: Sequence[str] = ("192.0.2.1", "192.0.2.2")
    nodes: Sequence[str] = ("192.0.2.1", "192.0.2.2", "192.0.2.3")
    vips: Sequence[tuple[str, str]] = (("192.0.2.100", "192.0.2.101"),)
    unicast: bool = True
    interface: str = "eth0"
    name: str = "ocp4"

    def values(self) -> Mapping[str, Value]:
        """Return what templates are rendered with: the first pair of virtual IPs, and all in `Configs`."""
        configs = [self._config(api, ingress) for api, ingress in self.vips]
        return {**configs[0], "Configs": configs}

    def render(self, template: Path = KEEPALIVED) -> str:
        """Return what `dynkeepalived` makes of a template."""
        return render(template.read_text(), self.values())

    def _config(self, api: str, ingress: str) -> Mapping[str, Value]:
        ids = router_ids(self.name)
        cluster = {
            "Name": self.name,
            "APIVIP": api,
            "IngressVIP": ingress,
            "APIVirtualRouterID": ids.api,
            "IngressVirtualRouterID": ids.ingress,
            "VIPNetmask": 128 if ":" in api else 32,
        }
        backends = [{"Host": f"m-{each}", "Address": each, "Port": 123} for each in self.masters]
        return {
            "Cluster": cluster,
            "LBConfig": {"Backends": backends},
            "IngressConfig": {"Peers": list(self.nodes)},
            "NonVirtualIP": self.own,
            "VRRPInterface": self.interface,
            "EnableUnicast": self.unicast,
        }
