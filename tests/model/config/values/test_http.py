"""`model.config.values.http`: nothing that could end a line of a request."""

from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.model.config.values.http import body_text, host_header, method, path, statuses

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("value", "ranges"),
    [
        ("200-399", ((200, 399),)),
        (204, ((204, 204),)),
        ("204", ((204, 204),)),
        ([200, "300-399"], ((200, 200), (300, 399))),
    ],
)
def test_statuses(value: object, ranges: object):
    """A status, a range, or a list of such become inclusive ranges."""
    assert statuses(value) == ranges


@pytest.mark.parametrize(
    ("value", "header"),
    [
        ("api.example.com", "api.example.com"),
        ("api.example.com:6443", "api.example.com:6443"),
        ("10.0.0.1:80", "10.0.0.1:80"),
        ("[2001:DB8::1]:80", "[2001:db8::1]:80"),
        ("[2001:db8::1]", "[2001:db8::1]"),
        ("10.0.0.1", "10.0.0.1"),
    ],
)
def test_host_headers(value: str, header: str):
    """A Host header is a name or an address, with or without a port, IPv6 in brackets."""
    assert host_header(value) == header


def test_methods_and_paths():
    """A method in capitals and a path with its query pass unchanged."""
    assert (method("HEAD"), path("/readyz?verbose&exclude=etcd")) == ("HEAD", "/readyz?verbose&exclude=etcd")


def test_a_text_of_a_body_is_any_that_is_not_too_long():
    """Any text is looked for, of a bounded length in bytes; an empty one would always be found."""
    assert body_text("all is well\n") == "all is well\n"
    for wrong in ("", None, 200, "\xe9" * 513):
        with pytest.raises(ValueError, match="must be"):
            body_text(wrong)


@pytest.mark.parametrize("read", [method, path, host_header])
@given(value=st.none() | st.booleans() | st.integers() | st.text() | st.from_regex(r"/?[A-Z.:\r\n ]+"))
def test_no_line_can_be_ended(read: Callable[[object], str], value: object):
    """Whatever passes is visible ASCII without a space."""
    with suppress(ValueError):
        assert all("!" <= character <= "~" for character in read(value))


@given(st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.text() | st.integers()))
def test_garbage_never_escapes(value: object):
    """Whatever stands for statuses gives ranges that are not upside down, or ValueError."""
    with suppress(ValueError):
        assert all(100 <= low <= high <= 599 for low, high in statuses(value))
