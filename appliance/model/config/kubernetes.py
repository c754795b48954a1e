"""The section `kubernetes`, as in `model.config.configuration`: how the cluster's API is asked."""

from typing import Literal

from pydantic import Field

from appliance.model.config.section import Section
from appliance.model.config.values.field_types import DnsName, FilePath, ServerAddresses


class KubernetesSection(Section):
    """The cluster's API, which the program `discover` watches: by a kubeconfig, or by token_file, ca and api.

    What is said beside a kubeconfig replaces what that says. All files are read again when they change.
    """

    kubeconfig: FilePath | None = Field(default=None, examples=["/etc/appliance/kubeconfig"])
    """File with authority and token or certificate of its current context; it runs no program (exec)."""
    token_file: FilePath | None = Field(default=None, examples=["/etc/appliance/token"])
    """File with the token of a service account."""
    ca: FilePath | None = Field(default=None, examples=["/etc/appliance/ca.crt"])
    """File with the certificates of the authorities that sign for API servers."""
    api: ServerAddresses = Field(default=(), examples=[["10.0.0.34:6443"]])
    """API servers that are asked, beside the one of the kubeconfig and the masters that are found."""
    server_name: DnsName | None = Field(default=None, examples=["api-int.ocp4.example.com"])
    """Name in the API's certificate. Default: that of the kubeconfig, else kubernetes.default.svc."""
    family: Literal["auto", "ipv4", "ipv6"] = Field(default="auto")
    """Family of the addresses of Nodes that have both; auto is that of the virtual IPs, else its first."""
