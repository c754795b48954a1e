"""Public keys: whole ones are taken, and one that was cut off anywhere does not pass for one."""

import base64
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.values.keys import ECDSA, ED25519, RSA

from appliance.model.guest.machine_settings import ssh_key, ssh_keys

pytestmark = pytest.mark.pure


def key(kind: str, *data: bytes) -> str:
    """Return a line with a key of a type, made of these fields."""
    blob = b"".join(len(each).to_bytes(4) + each for each in (kind.encode(), *data))
    return f"{kind} {base64.b64encode(blob).decode()} me@host"


def point(size: int) -> bytes:
    """Return an uncompressed point with coordinates of so many bytes."""
    return b"\4" + bytes(2 * size)


P256 = "ecdsa-sha2-nistp256"
SK_P256 = "sk-ecdsa-sha2-nistp256@openssh.com"
SK_ED25519 = "sk-ssh-ed25519@openssh.com"
WHOLE = [
    ED25519,
    ECDSA,
    RSA,
    key("ecdsa-sha2-nistp384", b"nistp384", point(48)),
    key("ecdsa-sha2-nistp521", b"nistp521", point(66)),
    key(SK_ED25519, bytes(32), b"ssh:"),
    key(SK_P256, b"nistp256", point(32), b"ssh:"),
]


@pytest.mark.parametrize("line", [*WHOLE, f'restrict,from="10.0.0.0/8,::1" {RSA}'])
def test_whole_keys_are_taken(line: str):
    """Every type that sshd of Debian 12 takes, with options or without."""
    assert ssh_key(line) == line


@pytest.mark.parametrize("line", WHOLE)
def test_a_key_that_was_cut_off_is_refused(line: str):
    """Wherever that was: it would take the place of one that opens."""
    kind, blob, _ = line.split()
    for end in range(len(blob)):
        with pytest.raises(ValueError, match=r"damaged|not a public key"):
            ssh_key(f"{kind} {blob[:end]}")


@pytest.mark.parametrize(
    "line",
    [
        ED25519.replace("ssh-ed25519", "ssh-rsa"),
        key("ssh-ed25519", bytes(31)),
        key("ssh-ed25519", bytes(32), b""),
        key("ssh-ed25519"),
        key("ssh-rsa", b"\1\0\1", b"\1" + bytes(100)),
        key("ssh-rsa", b"", b"\1" + bytes(256)),
        key(P256, b"nistp384", point(48)),
        key(P256, b"nistp256", point(48)),
        key(P256, b"nistp256", b"\2" + bytes(64)),
        key(SK_ED25519, bytes(32), b""),
        key(SK_P256, b"nistp256", point(32)),
        "ssh-rsa A me",
    ],
)
def test_a_key_whose_data_is_not_its_type_is_refused(line: str):
    """Another type, another curve, a field too many or too few, a length that none has."""
    with pytest.raises(ValueError, match="damaged"):
        ssh_key(line)


@pytest.mark.parametrize(
    "line", ["ssh-ed25519", "ssh-dss AAAAB3NzaC1kc3M= old", f"{ED25519} {RSA}", ED25519.split()[1]]
)
def test_what_is_no_key_is_refused(line: str):
    """No data, a type that nobody takes any more, two in one, no type."""
    with pytest.raises(ValueError, match="not a public key"):
        ssh_key(line)


@pytest.mark.parametrize("between", [",", ", ", ";", "\n", "\r\n\r\n", "\n# old\n"])
def test_keys_are_told_apart(between: str):
    """Keys may have commas or lines between them, and commas inside their options and comments."""
    written = [f'from="::1,127.0.0.1" {ED25519}, at work', RSA, ECDSA]
    found = ssh_keys(between.join(written))
    assert found.right == tuple(written)
    assert found.wrong == ()


def test_one_bad_key_costs_no_other():
    """The good ones are taken."""
    found = ssh_keys(f"{RSA}\nssh-ed25519 AAAA cut\n{ECDSA}")
    assert found.right == (RSA, ECDSA)
    assert len(found.wrong) == 1


@pytest.mark.parametrize("line", WHOLE)
def test_a_wrapped_key_is_none(line: str):
    """Its first half opens nothing."""
    middle = line.index(" ") + len(line.split()[1]) // 8 * 4
    found = ssh_keys(f"{line[:middle]}\n{line[middle:]}")
    assert found.right == ()
    assert len(found.wrong) == 2


def test_private_key_is_refused_and_not_shown():
    """A message must not spread it further."""
    found = ssh_keys("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\n")
    assert found.right == ()
    assert "b3Blbn" not in str(found.wrong)
    assert ".pub" in str(found.wrong)


@given(st.text(max_size=200))
def test_garbage_among_keys_never_escapes(text: str):
    """Any text gives keys and messages, and no key has a line break in it."""
    assert not any("\n" in key or "\r" in key for key in ssh_keys(text).right)


@given(st.sampled_from(["ssh-rsa", "ssh-ed25519", P256]), st.binary(max_size=80))
def test_garbage_in_a_key_never_escapes(kind: str, data: bytes):
    """Any data gives a key or ValueError."""
    with suppress(ValueError):
        ssh_key(f"{kind} {base64.b64encode(data).decode()}")
