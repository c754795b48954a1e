"""The signature of a release, as `ssh-keygen -Y sign` writes it: OpenSSH's PROTOCOL.sshsig.

Armoured text around: "SSHSIG", the version, the public key, a namespace, a reserved string, the name of a
hash and the signature itself. What is read here says whose it claims to be; ssh-keygen says whether it is.
"""

import base64
import binascii
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

NAMESPACE: Final = "lb-appliance"
"""What a key has to sign for: a signature that it made of something else (git, a mail) counts as none."""

MOST_BYTES: Final = 8192
"""Most bytes of a signature; an Ed25519 key's has 300, one of RSA with 16,384 bits 5,800."""

_BEGIN: Final = b"-----BEGIN SSH SIGNATURE-----"
_END: Final = b"-----END SSH SIGNATURE-----"
_MAGIC: Final = b"SSHSIG"
_VERSION: Final = 1
_LENGTH: Final = 4  # bytes of a number: RFC 4251 section 5


class SignatureError(Exception):
    """The text is no signature of ssh-keygen's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseSignature:
    """A signature, and what it says: the public key in OpenSSH's form, and what it signs for."""

    text: bytes
    key: bytes
    namespace: str

    @property
    def fingerprint(self) -> str:
        """The key as `ssh-keygen -l` names it."""
        digest = hashlib.sha256(self.key).digest()
        return f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"

    @property
    def public_key(self) -> str:
        """The key as it is in a file of allowed signers."""
        return base64.b64encode(self.key).decode()


def decode(text: bytes) -> ReleaseSignature:
    """Return what a signature says; raises SignatureError."""
    lines = text.strip().splitlines()
    if len(text) > MOST_BYTES or len(lines) < 3 or lines[0] != _BEGIN or lines[-1] != _END:
        raise SignatureError(f"it is not {_BEGIN.decode()} ... {_END.decode()}")
    try:
        content = base64.b64decode(b"".join(lines[1:-1]), validate=True)
    except binascii.Error as error:
        raise SignatureError(f"no base64: {error}") from error
    version = len(_MAGIC) + _LENGTH
    if content[:version] != _MAGIC + _VERSION.to_bytes(_LENGTH, "big"):
        raise SignatureError("no signature of version 1")
    match list(_strings(content[version:])):
        case [key, namespace, _, _, _]:
            return ReleaseSignature(text=text, key=key, namespace=namespace.decode(errors="backslashreplace"))
    raise SignatureError("not five strings in it")


def split(stream: bytes) -> tuple[bytes | None, bytes]:
    """Return the signature that a stream begins with, None without one, and what is behind it.

    Raises SignatureError for one that does not end within `MOST_BYTES`.
    """
    if not stream.startswith(_BEGIN):
        return None, stream
    head, end, _ = stream[:MOST_BYTES].partition(_END + b"\n")
    if not end:
        raise SignatureError(f"it does not end within {MOST_BYTES} bytes")
    size = len(head) + len(end)
    return stream[:size], stream[size:]


def _strings(content: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(content):
        start = at + _LENGTH
        at = start + int.from_bytes(content[at:start], "big")
        if at > len(content) or start > len(content):
            raise SignatureError("it is cut off")
        yield content[start:at]
