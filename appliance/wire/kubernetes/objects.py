"""The objects of the Kubernetes API that we read, reduced to the fields that we need.

Names are the API's own. A field that may be missing or null there has a default here.
"""

from typing import Annotated

import msgspec

Port = Annotated[int, msgspec.Meta(ge=1, le=65535)]


class _ApiObject(msgspec.Struct, frozen=True, rename="camel"):
    """The base of all: decoded from camelCase, immutable."""


class Metadata(_ApiObject, frozen=True, rename="camel"):
    """Name and version of an object."""

    name: str
    resource_version: str = ""


class NodeAddress(_ApiObject, frozen=True, rename="camel"):
    """An address of a Node; `type` is InternalIP, ExternalIP, Hostname or another."""

    type: str
    address: str


class NodeStatus(_ApiObject, frozen=True, rename="camel"):
    """The status of a Node. Its conditions are left out: checks decide whether a master is used."""

    addresses: tuple[NodeAddress, ...] | None = None


class Node(_ApiObject, frozen=True, rename="camel"):
    """A machine of the cluster."""

    metadata: Metadata
    status: NodeStatus | None = None


class EndpointConditions(_ApiObject, frozen=True, rename="camel"):
    """Whether an endpoint accepts connections; null means true (API reference, EndpointSlice)."""

    ready: bool | None = None


class Endpoint(_ApiObject, frozen=True, rename="camel"):
    """One endpoint of a service: its equivalent addresses, and its Node."""

    addresses: tuple[str, ...] = ()
    conditions: EndpointConditions | None = None
    node_name: str | None = None


class EndpointPort(_ApiObject, frozen=True, rename="camel"):
    """A port of all endpoints of a slice."""

    name: str | None = None
    port: Port | None = None


class EndpointSlice(_ApiObject, frozen=True, rename="camel"):
    """Some of the endpoints of a service; `address_type` is IPv4, IPv6 or FQDN."""

    metadata: Metadata
    address_type: str = "IPv4"
    endpoints: tuple[Endpoint, ...] | None = None
    ports: tuple[EndpointPort, ...] | None = None


class HostNetwork(_ApiObject, frozen=True, rename="camel"):
    """How a router listens on its Node; `protocol` is TCP, or PROXY if it expects that header."""

    http_port: Port | None = None
    https_port: Port | None = None
    protocol: str | None = None


class PublishingStrategy(_ApiObject, frozen=True, rename="camel"):
    """How routers are reached; on the Nodes only with HostNetwork."""

    type: str = ""
    host_network: HostNetwork | None = None


class IngressControllerStatus(_ApiObject, frozen=True, rename="camel"):
    """The status that the ingress operator has set for an IngressController."""

    endpoint_publishing_strategy: PublishingStrategy | None = None


class IngressController(_ApiObject, frozen=True, rename="camel"):
    """A set of routers of OpenShift (operator.openshift.io/v1)."""

    metadata: Metadata
    status: IngressControllerStatus | None = None


class ConfigMap(_ApiObject, frozen=True, rename="camel"):
    """Values by key."""

    metadata: Metadata
    data: dict[str, str] | None = None


ApiObject = Node | EndpointSlice | IngressController | ConfigMap
