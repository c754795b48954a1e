"""The property `config`: a whole configuration as text, in base64, or in base64 of its gzip."""

import base64
import binascii
import zlib
from typing import Final

LIMIT: Final = 1 << 20
"""Most bytes of a configuration; a gzip of 65,535 characters could hold fifty times as much."""

_GZIP: Final = b"\x1f\x8b"
_URL_SAFE: Final = str.maketrans("-_", "+/")


def unpack(text: str) -> bytes:
    """Return the configuration; raises ValueError."""
    if ":" in text:  # every YAML that says something has one, and base64 never
        return text.encode(errors="surrogatepass")
    data = _decoded("".join(text.split()))
    return _inflated(data) if data.startswith(_GZIP) else data


def _decoded(text: str) -> bytes:
    padded = text.rstrip("=").translate(_URL_SAFE)
    padded += "=" * (-len(padded) % 4)
    try:
        return base64.b64decode(padded, validate=True)
    except (binascii.Error, ValueError) as error:
        message = "is neither YAML nor base64: `base64 -w0 appliance.yaml` makes what belongs here"
        raise ValueError(message) from error


def _inflated(data: bytes) -> bytes:
    stream = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    try:
        plain = stream.decompress(data, LIMIT)
    except zlib.error as error:
        raise ValueError(f"begins as gzip and is damaged: {error}") from error
    if stream.unconsumed_tail:
        raise ValueError(f"holds more than {LIMIT} bytes")
    if not stream.eof:
        raise ValueError("ends in the middle of its gzip: was it cut off at the end?")
    return plain
