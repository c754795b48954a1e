"""The order of keys in what `appliance import` prints."""

import pytest

from appliance.model.document.tree import plain
from appliance.model.messages.problems import FilePosition
from appliance.translation.tree_builder import TreeBuilder
from appliance.translation.yaml_writer import in_order

pytestmark = pytest.mark.pure

HERE = FilePosition(line=1, column=1, source="haproxy.cfg")


def test_keys_are_in_the_order_of_the_documentation():
    """Sections and their keys are ordered, names are as they came, and unknown keys are last."""
    tree = TreeBuilder(HERE)
    for path, value in (
        (("unknown",), 1),
        (("virtual_ips", "api", "auth", "pass"), "secret"),
        (("virtual_ips", "api", "addresses"), ["10.0.0.200/24"]),
        (("pools", "z", "servers", "b"), {"weight": 1, "address": "10.0.0.1:80"}),
        (("pools", "z", "servers", "a"), None),
        (("pools", "z", "check"), False),
        (("pools", "z", "balance"), "source"),
        (("pools", "a"), {}),
        (("pools", "none"), None),
        (("defaults",), None),
        (("api", "frontends", "main", "pool"), "z"),
        (("api", "frontends", "main", "bind"), ["[::]:80"]),
    ):
        tree.put(path, value, HERE)

    ordered = plain(in_order(tree.root))

    assert repr(ordered) == repr(
        {
            "api": {"frontends": {"main": {"bind": ["[::]:80"], "pool": "z"}}},
            "pools": {
                "z": {
                    "balance": "source",
                    "check": False,
                    "servers": {"b": {"address": "10.0.0.1:80", "weight": 1}, "a": None},
                },
                "a": {},
                "none": None,
            },
            "defaults": None,
            "virtual_ips": {"api": {"addresses": ["10.0.0.200/24"], "auth": {"pass": "secret"}}},
            "unknown": 1,
        }
    )
