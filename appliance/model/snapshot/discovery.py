"""The discovery settings of an accepted configuration: which API to ask, for the servers of which pools."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal

MASTERS: Final = "node-role.kubernetes.io/master="
"""Label selector of masters: OpenShift's own load balancer uses it (runtimecfg, pkg/config/node.go)."""


class RouterPort(StrEnum):
    """The ports of a router that clients use, as the service `router-internal-NAME` names them."""

    HTTP = "http"
    HTTPS = "https"


class SourceKind(StrEnum):
    """What identifies servers to discover."""

    NODES = "nodes"
    ROUTERS = "routers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The source of servers: Nodes by a label selector, or the routers of an IngressController by name."""

    kind: SourceKind
    what: str

    @property
    def is_masters(self) -> bool:
        """Whether these are the machines of the API servers."""
        return self.kind is SourceKind.NODES and self.what == MASTERS

    def __str__(self) -> str:
        """Return it as status and log show it: `masters`, `nodes LABEL=VALUE`, `routers NAME`."""
        return "masters" if self.is_masters else f"{self.kind} {self.what}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiAddress:
    """Address of an API server: a literal, without brackets, or a DNS name; and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kubernetes:
    """How to ask the cluster's API: by a kubeconfig, or by token, authority and addresses.

    `server_name` None is the name in the kubeconfig, or the one that every API server has. `family` is 4 or
    6, None for that of the virtual IPs.
    """

    kubeconfig: str | None
    token_file: str | None
    ca: str | None
    api: tuple[ApiAddress, ...]
    server_name: str | None
    family: Literal[4, 6] | None
