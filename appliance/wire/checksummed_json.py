"""A JSON object with a digest of itself as its last entry, by which a damaged file is recognised.

Without it a port with one damaged digit would be a valid file with another port.
"""

import hashlib
import re
from typing import Final

_SEAL: Final = re.compile(rb',?"sha256":"([^"]*)"}\s*\Z')
_LONGEST: Final = 100  # bytes of the end of a file in which the seal is


class ChecksumError(Exception):
    """The content has changed since the seal was made."""


def checksummed(content: bytes) -> bytes:
    """Return a JSON object with its seal."""
    body = content.rstrip().removesuffix(b"}")
    comma = b"" if body.rstrip() == b"{" else b","
    return body + comma + b'"sha256":"' + _digest(body) + b'"}'


def verified(data: bytes) -> bytes:
    """Return the object without its checksummed, or as it is where it has none; raises ChecksumError."""
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
