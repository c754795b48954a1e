"""Public keys of SSH in the form of authorized_keys (sshd(8)), validated to their ends.

A truncated key opens nothing, so it must not pass for a whole one: its data must be exactly what its type
requires (RFC 4253 s.6.6, RFC 5656 s.3.1, RFC 8709 s.4, PROTOCOL.u2f of OpenSSH).
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from appliance.model.guest.parts import Parts, read_each
from appliance.model.messages.quoting import shown

_LEAST_RSA: Final = 1024  # bits; sshd accepts none that has fewer
_ED25519: Final = 32  # bytes
_UNCOMPRESSED: Final = 4  # SEC 1 s.2.3.3: both coordinates follow

Field = Callable[[bytes], bool]


def _is_ed25519(field: bytes) -> bool:
    return len(field) == _ED25519


def _is_modulus(field: bytes) -> bool:
    return int.from_bytes(field).bit_length() >= _LEAST_RSA


def _on(curve: str, coordinate: int) -> tuple[Field, Field]:
    """Return the fields of a key on a curve: its name, and a point with coordinates of so many bytes."""
    return (
        lambda field: field == curve.encode(),
        lambda field: len(field) == 1 + 2 * coordinate and field[0] == _UNCOMPRESSED,
    )


_FIELDS: Final[Mapping[str, tuple[Field, ...]]] = {
    "ssh-ed25519": (_is_ed25519,),
    "ssh-rsa": (bool, _is_modulus),
    "ecdsa-sha2-nistp256": _on("nistp256", 32),
    "ecdsa-sha2-nistp384": _on("nistp384", 48),
    "ecdsa-sha2-nistp521": _on("nistp521", 66),
    "sk-ssh-ed25519@openssh.com": (_is_ed25519, bool),
    "sk-ecdsa-sha2-nistp256@openssh.com": (*_on("nistp256", 32), bool),
}
"""By type the further fields of a key's data; the last field of sk- is the application, often `ssh:`."""

_ANY_TYPE: Final = "|".join(map(re.escape, _FIELDS))
_KEY: Final = re.compile(
    rf"(?P<options>[^\x00-\x1f]*[ \t])?(?P<type>{_ANY_TYPE})[ \t]+(?P<blob>[A-Za-z0-9+/]+={{0,2}})"
    r"(?P<comment>[ \t][^\x00-\x1f]*)?"
)
# A comma separates keys, but also occurs inside options and comments: only before a type it separates.
_BETWEEN_KEYS: Final = re.compile(rf"[\r\n]+|[,;]\s*(?=(?:{_ANY_TYPE})\s)")


def ssh_keys(text: str) -> Parts[str]:
    """Read lines of authorized_keys, with commas or line breaks between them."""
    if "PRIVATE KEY" in text:
        message = (
            "is a private key, which belongs nowhere but on its own machine: the public one ends in .pub"
        )
        return Parts(right=(), wrong=(message,))
    lines = (each.strip() for each in _BETWEEN_KEYS.split(text))
    return read_each((each for each in lines if each and not each.startswith("#")), ssh_key)


def ssh_key(line: str) -> str:
    """Return a line of authorized_keys, if its key is a whole one of its type."""
    found = _KEY.fullmatch(line)
    if found is None or re.search(rf"(?:{_ANY_TYPE})\s", found["options"] or ""):
        # Not quoted: a password that was written into the wrong field of a form would be shown.
        such = "such as `ssh-ed25519 AAAA... name`"
        raise ValueError(f"a line of {len(line)} characters is not a public key {such}")
    try:
        whole = _is_whole(found["type"], list(_fields(found["blob"])))
    except ValueError:
        whole = False
    if not whole:
        raise ValueError(
            f"{shown(line)} is damaged: its middle part is no whole key of the type {found['type']}; "
            "was it cut off, or wrapped into two lines?"
        )
    return line


def _fields(blob: str) -> Iterator[bytes]:
    """Yield the strings in a key's data; raises ValueError if the last one is incomplete."""
    try:
        data = base64.b64decode(blob, validate=True)
    except binascii.Error as error:
        raise ValueError("is no base64") from error
    while data:
        end = 4 + int.from_bytes(data[:4])
        if len(data) < end:
            raise ValueError("is cut off")
        yield data[4:end]
        data = data[end:]


def _is_whole(kind: str, data: list[bytes]) -> bool:
    expected: tuple[Field, ...] = (lambda field: field == kind.encode(), *_FIELDS[kind])
    return len(data) == len(expected) and all(
        is_right(each) for is_right, each in zip(expected, data, strict=True)
    )
