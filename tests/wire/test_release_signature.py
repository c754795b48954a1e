"""Signatures of releases: whose they claim to be, and what is none."""

import base64
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.values.release_signatures import FINGERPRINT, SIGNATURE

from appliance.wire.release_signature import MOST_BYTES, NAMESPACE, SignatureError, decode, split

pytestmark = pytest.mark.pure

_BEGIN, *_, _END = SIGNATURE.splitlines()
_CONTENT = base64.b64decode(b"".join(SIGNATURE.splitlines()[1:-1]))


def _armoured(content: bytes) -> bytes:
    return b"\n".join([_BEGIN, base64.b64encode(content), _END, b""])


def test_what_ssh_keygen_wrote_is_read():
    """The key has ssh-keygen's own fingerprint, and the text is kept as it was."""
    found = decode(SIGNATURE)
    assert (found.fingerprint, found.namespace, found.text) == (FINGERPRINT, NAMESPACE, SIGNATURE)
    assert found.public_key.startswith("AAAAC3NzaC1lZDI1NTE5AAAA")
    assert decode(_armoured(_CONTENT)).key == found.key


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "BEGIN SSH SIGNATURE"),
        (_BEGIN + b"\n" + _END, "BEGIN SSH SIGNATURE"),
        (SIGNATURE.replace(b"END", b"FIN"), "BEGIN SSH SIGNATURE"),
        (SIGNATURE + b"\n" * MOST_BYTES, "BEGIN SSH SIGNATURE"),
        (SIGNATURE.replace(b"U1NI", b"U1N-"), "no base64"),
        (_armoured(b"SSHSIH" + _CONTENT[6:]), "version 1"),
        (_armoured(_CONTENT[:9] + b"\x02" + _CONTENT[10:]), "version 1"),
        (_armoured(_CONTENT[:-1]), "cut off"),
        (_armoured(_CONTENT + b"\0\0"), "cut off"),
        (_armoured(_CONTENT + bytes(4)), "five strings"),
        (_armoured(_CONTENT[:10]), "five strings"),
    ],
)
def test_what_is_none(text: bytes, reason: str):
    """Another text, damaged base64, another version, too few or too many parts."""
    with pytest.raises(SignatureError, match=reason):
        decode(text)


@given(st.binary(max_size=400))
def test_garbage_never_escapes(content: bytes):
    """Any bytes in the armour are a signature or a SignatureError."""
    with suppress(SignatureError):
        assert decode(_armoured(content)).text == _armoured(content)
    with suppress(SignatureError):
        decode(content)


@given(st.binary(max_size=40))
def test_a_signature_before_an_archive_is_split_off(archive: bytes):
    """Both come back as they were; a stream without one is the archive."""
    assert split(SIGNATURE + archive) == (SIGNATURE, archive)
    assert split(b"\x1f\x8b" + archive) == (None, b"\x1f\x8b" + archive)


def test_a_signature_that_does_not_end_is_none():
    """It is not searched for in a whole archive."""
    for stream in (SIGNATURE[:-5], _BEGIN + bytes(MOST_BYTES) + _END + b"\n"):
        with pytest.raises(SignatureError, match="does not end within 8192 bytes"):
            split(stream)
