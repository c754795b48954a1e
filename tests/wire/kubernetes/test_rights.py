"""The rights that `image/discover-rights.yaml` gives are those that are needed, and no others."""

from pathlib import Path

import pytest
import yaml

from appliance.wire.kubernetes import requests
from appliance.wire.kubernetes.requests import Resource

pytestmark = pytest.mark.pure

FILE = Path(__file__).parents[3] / "image" / "discover-rights.yaml"
OBJECTS = [each for each in yaml.safe_load_all(FILE.read_text()) if each]
RESOURCES = (
    requests.nodes("a=b"),
    requests.router_endpoints("default"),
    requests.ingress_controller("default"),
    requests.API_ENDPOINTS,
    requests.BOOTSTRAP,
)

Right = tuple[str, str, str | None, str | None]


def needed(resource: Resource) -> Right:
    """Return group, resource, namespace and name that a list needs the right for."""
    parts = resource.path.strip("/").split("/")
    group = parts[1] if parts[0] == "apis" else ""
    namespace = parts[parts.index("namespaces") + 1] if "namespaces" in parts else None
    by_name = resource.name if resource in (requests.API_ENDPOINTS, requests.BOOTSTRAP) else None
    return group, parts[-1], namespace, by_name


def test_exactly_what_is_asked_is_allowed():
    """To look at it, by name where one object is enough."""
    roles = [each for each in OBJECTS if each["kind"] in ("ClusterRole", "Role")]
    given: list[Right] = []
    for role in roles:
        (rule,) = role["rules"]
        assert rule["verbs"] == ["get", "list", "watch"]
        (group,), (resource,) = rule["apiGroups"], rule["resources"]
        (name,) = rule.get("resourceNames", [None])
        given.append((group, resource, role["metadata"].get("namespace"), name))
    assert sorted(given, key=str) == sorted(map(needed, RESOURCES), key=str)


def test_every_role_is_bound_to_the_one_account():
    """In its own namespace; the token is that account's."""
    account = {"kind": "ServiceAccount", "name": "lb-appliance", "namespace": "kube-system"}
    roles = {
        (each["metadata"]["name"], each["metadata"].get("namespace")) for each in OBJECTS if "rules" in each
    }
    bindings = [each for each in OBJECTS if "roleRef" in each]
    assert all(each["subjects"] == [account] for each in bindings)
    assert set(map(_name, bindings)) == roles
    assert all(each["roleRef"]["name"] == each["metadata"]["name"] for each in bindings)
    (secret,) = (each for each in OBJECTS if each["kind"] == "Secret")
    assert secret["metadata"]["annotations"] == {"kubernetes.io/service-account.name": account["name"]}


def _name(value: dict[str, dict[str, str]]) -> tuple[str, str | None]:
    return value["metadata"]["name"], value["metadata"].get("namespace")
