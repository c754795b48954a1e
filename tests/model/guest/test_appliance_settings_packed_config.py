"""The property `config` is unpacked from whatever form an operator may have given it."""

import base64
import gzip
import lzma
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.model.guest.appliance_settings import LIMIT, unpack

pytestmark = pytest.mark.pure

YAML = b"cluster: { name: ocp4 } # \xc3\xbc?>\n" * 5
PACKED = base64.b64encode(YAML).decode()
ZIPPED = base64.b64encode(gzip.compress(YAML, mtime=0)).decode()


@pytest.mark.parametrize(
    "text",
    [
        YAML.decode(),
        PACKED,
        ZIPPED,
        base64.encodebytes(YAML).decode(),
        base64.urlsafe_b64encode(YAML).decode(),
        PACKED.rstrip("="),
        f"data:text/yaml;base64,{PACKED}",
        PACKED.replace(PACKED[10:12], PACKED[10:12] + " \r\n"),
    ],
)
def test_every_form_gives_the_same(text: str):
    """Plain, base64 in one line or in many, with or without its end, and gzip."""
    assert unpack(text) == YAML


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("not base64!", "base64 -w0"),
        ("ä", "base64 -w0"),
        ("A", "base64 -w0"),
        ("foo", "base64 -w0"),
        ("", "base64 -w0"),
        (base64.b64encode(PACKED.encode()).decode(), "encoded twice"),
        (base64.b64encode(YAML.decode().encode("utf-16")).decode(), "UTF-8"),
        (base64.b64encode(lzma.compress(YAML)).decode(), "not by gzip"),
        (f"# made {YAML.decode()}".replace("\n", " "), "line breaks"),
        (ZIPPED[: len(ZIPPED) // 8 * 4], "cut off"),
        (base64.b64encode(b"\x1f\x8b garbage").decode(), "damaged"),
        (base64.b64encode(gzip.compress(bytes(LIMIT + 1), mtime=0)).decode(), "more than"),
    ],
)
def test_damage_is_told(text: str, message: str):
    """What is cut off, damaged or too large is an error that says so."""
    with pytest.raises(ValueError, match=message):
        unpack(text)


@given(st.text(max_size=200))
def test_garbage_never_escapes(text: str):
    """Any text gives bytes or ValueError."""
    with suppress(ValueError):
        unpack(text)
