"""Names that ours may be."""

import pytest

from appliance.model.config.values.names import name
from appliance.translation.haproxy.values.names import our_name

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
    assert our_name(given, taken) == expected
    assert name(expected) == expected
