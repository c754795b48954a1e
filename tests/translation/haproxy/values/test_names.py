"""Names that ours may be."""

import pytest

from appliance.model.config.values.names import name
from appliance.translation.haproxy.values.names import Names

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("given", "taken", "expected"),
    [
        ("masters", (), "masters"),
        ("a:b c", (), "a-b-c"),
        ("", (), "unnamed"),
        ("a", ("a",), "a-2"),
        ("a", ("a", "a-2"), "a-3"),
        ("x" * 70, ("x" * 63,), "x" * 61 + "-2"),
    ],
)
def test_names(given: str, taken: tuple[str, ...], expected: str):
    """A name stays, or becomes the nearest one that is free; it is always one of ours."""
    names = Names()
    for each in taken:
        names.ours(each)
    assert names.ours(given) == expected
    assert name(expected) == expected


def test_reserved_names():
    """They are keys of the mapping."""
    assert Names("discover").ours("discover") == "discover-2"
