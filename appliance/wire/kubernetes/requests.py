"""Requests to an API server: the paths of lists and watches."""

from dataclasses import dataclass
from urllib.parse import quote, urlencode

from appliance.wire.kubernetes.objects import (
    ApiObject,
    ConfigMap,
    EndpointSlice,
    IngressController,
    Node,
)

_NODES = "/api/v1/nodes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """Objects that are listed and watched together: their kind, path and selection.

    `name` is that of a single object, for which a permission by name is enough; `what` is the usual name of
    the objects.
    """

    kind: type[ApiObject]
    path: str
    what: str
    labels: str | None = None
    name: str | None = None

    def list_path(self, *, limit: int, more: str | None) -> str:
        """Return the path of a page of the list; `more` comes from the page before."""
        return self._with(limit=str(limit), **({"continue": more} if more else {}))

    def watch_path(self, *, resource_version: str, seconds: int) -> str:
        """Return the path of a watch from a version on; the server ends it after some seconds."""
        return self._with(
            watch="1",
            resourceVersion=resource_version,
            allowWatchBookmarks="true",
            timeoutSeconds=str(seconds),
        )

    def _with(self, **query: str) -> str:
        selectors = {
            **({"labelSelector": self.labels} if self.labels else {}),
            **({"fieldSelector": f"metadata.name={self.name}"} if self.name else {}),
        }
        return f"{self.path}?{urlencode({**selectors, **query}, quote_via=quote)}"


def nodes(labels: str) -> Resource:
    """Return Nodes by a label selector."""
    return Resource(kind=Node, path=_NODES, what="nodes", labels=labels)


def router_endpoints(controller: str) -> Resource:
    """Return the endpoints of an IngressController's routers (CIO assets/router/service-internal.yaml)."""
    return Resource(
        kind=EndpointSlice,
        path="/apis/discovery.k8s.io/v1/namespaces/openshift-ingress/endpointslices",
        what="endpointslices in openshift-ingress",
        labels=f"kubernetes.io/service-name=router-internal-{controller}",
    )


def ingress_controller(name: str) -> Resource:
    """Return one IngressController."""
    return Resource(
        kind=IngressController,
        path="/apis/operator.openshift.io/v1/namespaces/openshift-ingress-operator/ingresscontrollers",
        what=f"ingresscontroller {name} in openshift-ingress-operator",
        name=name,
    )


API_ENDPOINTS = Resource(
    kind=EndpointSlice,
    path="/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
    what="endpointslice kubernetes in default",
    name="kubernetes",
)
"""The API servers, as they register themselves."""

BOOTSTRAP = Resource(
    kind=ConfigMap,
    path="/api/v1/namespaces/kube-system/configmaps",
    what="configmap bootstrap in kube-system",
    name="bootstrap",
)
"""The progress of the cluster's installation (installer, waitForBootstrapConfigMap)."""
