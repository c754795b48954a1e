"""The section `kubernetes`, as in `model.config.configuration`: access to the cluster's API."""

from typing import Literal

from pydantic import Field

from appliance.model.config.section import Section
from appliance.model.config.values.field_types import DnsName, FilePath, ServerAddresses


class KubernetesSection(Section):
    """The cluster's API, which the program `discover` watches, with a kubeconfig, or token_file, ca and api.

    Other keys override the kubeconfig's values. All files are read again when they change.
    """

    kubeconfig: FilePath | None = Field(default=None, examples=["/etc/appliance/kubeconfig"])
    """Kubeconfig whose current context has the CA and a token or certificate; it runs no program (exec)."""
    token_file: FilePath | None = Field(default=None, examples=["/etc/appliance/token"])
    """File with a service account's token."""
    ca: FilePath | None = Field(default=None, examples=["/etc/appliance/ca.crt"])
    """File with the CA certificates for the API servers."""
    api: ServerAddresses = Field(default=(), examples=[["10.0.0.34:6443"]])
    """API servers to use, in addition to the kubeconfig's and the discovered masters."""
    server_name: DnsName | None = Field(default=None, examples=["api-int.ocp4.example.com"])
    """Name in the API's certificate. Default: the kubeconfig's, else kubernetes.default.svc."""
    family: Literal["auto", "ipv4", "ipv6"] = Field(default="auto")
    """Address family for Nodes that have both; auto: that of the virtual IPs, else the Node's first."""
