"""HMAC keys of advertisements and reports: those in the configuration, and those in files that it names."""

import errno
import os
import stat
from collections.abc import Iterable

from appliance.model.config.values.vrrp import key_bytes
from appliance.model.snapshot.virtual_router import HmacKey

_LONGEST = 1024  # bytes: a key of 64 bytes in hexadecimal digits, and room to detect a longer one


def secrets(keys: Iterable[HmacKey]) -> dict[int, bytes]:
    """Return the keys by id; raises OSError for an unreadable file, with its name in the text."""
    return {key.id: _secret(key) for key in keys}


def _secret(key: HmacKey) -> bytes:
    if key.file is None:
        return bytes.fromhex(key.secret)
    found = key_bytes(text_of(key.file))
    if found is None:
        raise OSError(
            errno.EINVAL, f"the key file {key.file} has no key: 32 to 64 bytes, in ASCII or `hex:...`"
        )
    return found


def text_of(path: str) -> str:
    """Return the text of a file with a key or password; raises OSError, with the file's name in its text."""
    try:
        return _text(path).strip()
    except OSError as error:
        raise OSError(error.errno, f"the key file {path}: {error.strerror}") from None


def _text(path: str) -> str:
    """Return the text of a regular file; reading anything else could block forever."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        return os.read(descriptor, _LONGEST).decode("ascii", "replace")
    finally:
        os.close(descriptor)
