"""The store of a resource follows what a server would show, whatever lists and events come."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.core.discovery import reflection
from appliance.core.discovery.reflection import MOST_OBJECTS, Reflection, TooManyObjectsError
from appliance.wire.kubernetes.answers import Bookmark, Changed, Deleted, Page, Refusal
from appliance.wire.kubernetes.objects import ConfigMap, Metadata

pytestmark = pytest.mark.pure


def thing(name: str, version: str = "1", **data: str) -> ConfigMap:
    """Return an object."""
    return ConfigMap(metadata=Metadata(name=name, resource_version=version), data=data)


def page(*items: ConfigMap, version: str = "5", more: str | None = None) -> Page[ConfigMap]:
    """Return a page."""
    return Page(items=items, resource_version=version, more=more)


def names(found: Reflection[ConfigMap]) -> list[str]:
    """Return the names of the objects."""
    return [each.metadata.name for each in found.objects]


def test_a_list_replaces_what_was_known():
    """What vanished while nobody watched has no event, and is gone after the list; not before its end."""
    found: Reflection[ConfigMap] = Reflection()
    assert found.resource_version is None
    found.page(page(thing("a"), thing("b")))
    found.begin_list()
    found.page(page(thing("c"), more="x"))
    assert names(found) == ["a", "b"]
    found.page(page(thing("b"), version="9"))
    assert names(found) == ["b", "c"]
    assert (found.resource_version, found.changes) == ("9", 2)


def test_a_list_that_broke_off_leaves_nothing_behind():
    """Its pages do not get into the next one."""
    found: Reflection[ConfigMap] = Reflection()
    found.page(page(thing("a"), more="x"))
    found.begin_list()
    found.page(page(thing("b")))
    assert names(found) == ["b"]


def test_events_change_one_object_each():
    """Versions go on with every event, bookmarks change nothing else."""
    found: Reflection[ConfigMap] = Reflection()
    found.page(page(thing("a")))
    assert found.event(Changed(value=thing("b"), resource_version="6")) is None
    assert found.event(Deleted(value=thing("a"), resource_version="7")) is None
    assert found.event(Deleted(value=thing("a"), resource_version="7")) is None
    changes = found.changes
    assert found.event(Bookmark(resource_version="8")) is None
    assert names(found) == ["b"]
    assert (found.resource_version, found.changes) == ("8", changes)


def test_a_version_that_is_too_old_has_it_listed():
    """What is known stays until then; another error leaves the version."""
    found: Reflection[ConfigMap] = Reflection()
    found.page(page(thing("a")))
    error = Refusal(code=500, message="etcd")
    assert found.event(error) == error
    assert found.resource_version == "5"
    assert found.event(Refusal(code=410, message="too old")) is not None
    assert found.resource_version is None
    assert names(found) == ["a"]


def test_a_list_without_a_version_is_made_again():
    """There is nothing to watch from."""
    found: Reflection[ConfigMap] = Reflection()
    found.page(page(thing("a"), version=""))
    assert found.resource_version is None
    assert names(found) == ["a"]


def test_there_is_a_most_of_objects(monkeypatch: pytest.MonkeyPatch):
    """A list or events without end cost an error, and not all memory."""
    assert MOST_OBJECTS >= 5000
    monkeypatch.setattr(reflection, "MOST_OBJECTS", 2)
    found: Reflection[ConfigMap] = Reflection()
    with pytest.raises(TooManyObjectsError):
        found.page(page(thing("a"), thing("b"), thing("c")))
    found.begin_list()
    found.page(page(thing("a"), thing("b")))
    with pytest.raises(TooManyObjectsError):
        found.event(Changed(value=thing("c"), resource_version="6"))
    assert found.resource_version is None


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.booleans()), max_size=20), st.sets(st.sampled_from("abcd"))
)
def test_after_any_events_it_is_what_the_server_has(events: list[tuple[str, bool]], first: set[str]):
    """The server's own bookkeeping and ours never differ."""
    found: Reflection[ConfigMap] = Reflection()
    found.page(page(*map(thing, first)))
    there = set(first)
    for name, comes in events:
        kind = Changed if comes else Deleted
        found.event(kind(value=thing(name), resource_version="7"))
        there = there | {name} if comes else there - {name}
    assert set(names(found)) == there


def test_heartbeats_change_nothing():
    """Kubelets write their Node again and again: what is looked at is the same, and nobody has to be told."""
    found: Reflection[ConfigMap] = Reflection()
    found.page(page(*(thing(f"n{number}", address="10.0.0.1") for number in range(100))))
    before = found.changes
    for number in range(1000):
        same = thing(f"n{number % 100}", version=str(10 + number), address="10.0.0.1")
        found.event(Changed(value=same, resource_version=str(10 + number)))
    found.event(Deleted(value=thing("nobody"), resource_version="2000"))
    assert (found.changes, found.resource_version) == (before, "2000")
    found.event(Changed(value=thing("n1", version="2001", address="10.0.0.2"), resource_version="2001"))
    assert found.changes == before + 1
