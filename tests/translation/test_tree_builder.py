"""A configuration that grows key by key knows where each came from."""

import pytest

from appliance.model.document.tree import plain
from appliance.model.messages.problems import FilePosition
from appliance.translation.tree_builder import TreeBuilder

pytestmark = pytest.mark.pure


def at(line: int) -> FilePosition:
    """Return a place in a foreign file."""
    return FilePosition(line=line, column=1, source="haproxy.cfg")


def test_values_and_their_places():
    """Mappings are made as they are needed; a value that is put again wins."""
    builder = TreeBuilder(at(1))
    builder.put(("pools", "masters", "balance"), "source", at(2))
    builder.put(("pools", "masters", "servers"), {"a": {"address": "192.0.2.1:6443"}}, at(3))
    builder.put(("pools", "masters", "balance"), "leastconn", at(4))
    builder.append(("api", "frontends", "main", "bind"), "[::]:9445", at(5))
    builder.append(("api", "frontends", "main", "bind"), ["no list is flattened"], at(6))
    assert plain(builder.root) == {
        "pools": {"masters": {"balance": "leastconn", "servers": {"a": {"address": "192.0.2.1:6443"}}}},
        "api": {"frontends": {"main": {"bind": ["[::]:9445", ["no list is flattened"]]}}},
    }
    assert isinstance(builder.root.value, dict)
    masters = builder.root.value["pools"].node.value
    assert isinstance(masters, dict)
    assert masters["masters"].place == at(2)
    assert builder.has(("pools", "masters", "servers", "a"))
    assert not builder.has(("pools", "routers"))
    assert not builder.has(("pools", "masters", "balance", "below"))


def test_a_key_that_is_something_else():
    """A reader that contradicts itself is a bug, and is told so."""
    builder = TreeBuilder(at(1))
    builder.put(("log", "level"), "info", at(2))
    with pytest.raises(TypeError, match="line 2 is not a mapping"):
        builder.put(("log", "level", "x"), 1, at(3))
    with pytest.raises(TypeError, match="not a list"):
        builder.append(("log", "level"), 1, at(3))


def test_graft():
    """What another builder made keeps its places."""
    inner, outer = TreeBuilder(at(1)), TreeBuilder(at(1))
    place = FilePosition(line=7, column=2, source="k")
    inner.put(("a",), 1, place)
    outer.graft(("x", "y"), inner.root, at(1))
    assert plain(outer.root) == {"x": {"y": {"a": 1}}}
    branch = outer.root.value["x"].node.value["y"].node  # type: ignore[index,union-attr]  # mappings
    assert branch.value["a"].node.place == place  # type: ignore[index,union-attr]  # a mapping
