"""The paths of lists and watches, as the API concepts of Kubernetes have them."""

import pytest

from appliance.wire.kubernetes import requests

pytestmark = pytest.mark.pure


def test_a_list_by_labels():
    """A selector is quoted, and pages follow each other by what the one before said."""
    nodes = requests.nodes("node-role.kubernetes.io/master=")
    selector = "/api/v1/nodes?labelSelector=node-role.kubernetes.io%2Fmaster%3D"
    assert nodes.list_path(limit=250, more=None) == f"{selector}&limit=250"
    assert nodes.list_path(limit=250, more="a=b") == f"{selector}&limit=250&continue=a%3Db"


def test_a_watch_by_name():
    """A right to one object by name is enough for a list of that name alone."""
    path = requests.BOOTSTRAP.watch_path(resource_version="12", seconds=10)
    assert path == (
        "/api/v1/namespaces/kube-system/configmaps?fieldSelector=metadata.name%3Dbootstrap"
        "&watch=1&resourceVersion=12&allowWatchBookmarks=true&timeoutSeconds=10"
    )


def test_routers_are_those_of_one_controller():
    """The endpoints are chosen by their service, the IngressController by its name."""
    endpoints, controller = requests.router_endpoints("shard"), requests.ingress_controller("shard")
    assert endpoints.labels == "kubernetes.io/service-name=router-internal-shard"
    assert controller.name == "shard"
    assert "namespaces/openshift-ingress-operator/ingresscontrollers" in controller.path
