"""The property `config`: a whole configuration as text, in base64, or in base64 of its gzip."""

import base64
import binascii
import re
import zlib
from typing import Final

LIMIT: Final = 1 << 20
"""Most bytes of a configuration; a gzip of 65,535 characters could hold fifty times as much."""

_GZIP: Final = b"\x1f\x8b"
_NEITHER: Final = "is neither YAML nor base64 of one: `base64 -w0 appliance.yaml` makes what belongs here"
_TWICE: Final = "is base64 of no YAML: was it encoded twice?"
_BASE64: Final = re.compile(rb"[A-Za-z0-9+/_\s-]{16,}={0,2}\s*")
_DATA_URL: Final = re.compile(r"data:[^,]{0,100};base64,")
_UTF_16: Final = "is UTF-16: save the file as UTF-8"
_COMPRESSED: Final = "is compressed, and not by gzip: `gzip -9 <appliance.yaml | base64 -w0`"
_OTHERS: Final = {
    b"\xff\xfe": _UTF_16,
    b"\xfe\xff": _UTF_16,
    b"\xfd7zXZ\0": _COMPRESSED,
    b"\x28\xb5\x2f\xfd": _COMPRESSED,  # zstd
    b"BZh": _COMPRESSED,
    b"PK\3\4": _COMPRESSED,
}
_URL_SAFE: Final = str.maketrans("-_", "+/")


def unpack(text: str) -> bytes:
    """Return the configuration; raises ValueError."""
    url = _DATA_URL.match(text)
    if ":" in text and url is None:  # every YAML that says something has one, and base64 never
        if text.startswith("#") and "\n" not in text:
            raise ValueError("has lost its line breaks, and is all comment so: give it in base64")
        return text.encode(errors="surrogatepass")
    data = _decoded("".join(text[url.end() if url else 0 :].split()))
    plain = _inflated(data) if data.startswith(_GZIP) else data
    for beginning, message in _OTHERS.items():
        if plain.startswith(beginning):
            raise ValueError(message)
    if b":" not in plain:
        raise ValueError(_TWICE if _BASE64.fullmatch(plain) else _NEITHER)
    return plain


def _decoded(text: str) -> bytes:
    padded = text.rstrip("=").translate(_URL_SAFE)
    padded += "=" * (-len(padded) % 4)
    try:
        return base64.b64decode(padded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(_NEITHER) from error


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
