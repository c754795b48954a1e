"""The objects of the Kubernetes API that we look at, with the fields that we need and no others.

Names are the API's own. A field that may be missing or null there has a default here.
"""

from typing import Annotated

import msgspec

Port = Annotated[int, msgspec.Meta(ge=1, le=65535)]


class _ApiObject(msgspec.Struct, frozen=True, rename="camel"):
    """What all have in common: decoded from camelCase, never changed."""


class Metadata(_ApiObject, frozen=True, rename="camel"):
    """Name of an object, and the version of it that this is."""

    name: str
    resource_version: str = ""


class NodeAddress(_ApiObject, frozen=True, rename="camel"):
    """An address of a Node; `type` is InternalIP, ExternalIP, Hostname or another."""

    type: str
    address: str


class NodeStatus(_ApiObject, frozen=True, rename="camel"):
    """What is known of a Node. Its conditions are left out: whether a master is used, checks decide."""

    addresses: tuple[NodeAddress, ...] | None = None


class Node(_ApiObject, frozen=True, rename="camel"):
    """A machine of the cluster."""

    metadata: Metadata
    status: NodeStatus | None = None


class EndpointConditions(_ApiObject, frozen=True, rename="camel"):
    """Whether an endpoint takes connections; null is to be taken for true (API reference, EndpointSlice)."""

    ready: bool | None = None


class Endpoint(_ApiObject, frozen=True, rename="camel"):
    """One endpoint of a service: its addresses, all of which are the same, and the Node that it is on."""

    addresses: tuple[str, ...] = ()
    conditions: EndpointConditions | None = None
    node_name: str | None = None


class EndpointPort(_ApiObject, frozen=True, rename="camel"):
    """A port that all endpoints of a slice have."""

    name: str | None = None
    port: Port | None = None


class EndpointSlice(_ApiObject, frozen=True, rename="camel"):
    """Some of the endpoints of a service; `address_type` is IPv4, IPv6 or FQDN."""

    metadata: Metadata
    address_type: str = "IPv4"
    endpoints: tuple[Endpoint, ...] | None = None
    ports: tuple[EndpointPort, ...] | None = None


class HostNetwork(_ApiObject, frozen=True, rename="camel"):
    """How a router listens on its Node; `protocol` is TCP, or PROXY where it expects that header."""

    http_port: Port | None = None
    https_port: Port | None = None
    protocol: str | None = None


class PublishingStrategy(_ApiObject, frozen=True, rename="camel"):
    """How routers are reached; only with HostNetwork is that on the Nodes."""

    type: str = ""
    host_network: HostNetwork | None = None


class IngressControllerStatus(_ApiObject, frozen=True, rename="camel"):
    """What the operator of routers has made of an IngressController."""

    endpoint_publishing_strategy: PublishingStrategy | None = None


class IngressController(_ApiObject, frozen=True, rename="camel"):
    """A set of routers of OpenShift (operator.openshift.io/v1)."""

    metadata: Metadata
    status: IngressControllerStatus | None = None


class ConfigMap(_ApiObject, frozen=True, rename="camel"):
    """Words by keys."""

    metadata: Metadata
    data: dict[str, str] | None = None


ApiObject = Node | EndpointSlice | IngressController | ConfigMap
