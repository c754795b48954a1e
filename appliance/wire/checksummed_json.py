"""A JSON object with its own digest as the last entry, which reveals damage to the file.

Without it, one damaged digit of a port would give a valid file with another port.
"""

import hashlib
import re
from typing import Final

_SEAL: Final = re.compile(rb',?"sha256":"([^"]*)"}\s*\Z')
_LONGEST: Final = 100  # bytes at the end of a file that hold the digest


class ChecksumError(Exception):
    """The content has changed since the digest was made."""


def checksummed(content: bytes) -> bytes:
    """Return a JSON object with its digest."""
    body = content.rstrip().removesuffix(b"}")
    comma = b"" if body.rstrip() == b"{" else b","
    return body + comma + b'"sha256":"' + _digest(body) + b'"}'


def verified(data: bytes) -> bytes:
    """Return the object without its digest, or unchanged if it has none; raises ChecksumError."""
    end = data[-_LONGEST:]
    found = _SEAL.search(end)
    if found is None:
        return data
    body = data[: len(data) - len(end) + found.start()]
    if _digest(body) != found[1]:
        raise ChecksumError("not what was written there")
    return body + b"}"


def _digest(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest().encode()
