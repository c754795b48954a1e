"""The property `ca_bundle`: certificates of authorities, as PEM or in base64."""

import base64
import binascii
import re
import textwrap
from typing import Final

_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
_CERTIFICATE: Final = re.compile(f"{_BEGIN}(.*?){_END}", re.DOTALL)
_SEQUENCE: Final = 0x30  # the first byte of every certificate: ITU-T X.690 s.8.9.1
_LINE: Final = 64  # RFC 7468 s.2


def authorities(text: str) -> tuple[str, ...]:
    """Return each certificate as PEM in its usual lines, which a form may have joined; raises ValueError."""
    if _BEGIN not in text:
        text = _decoded("".join(text.split())).decode(errors="replace")
    found = tuple(dict.fromkeys(_pem(each) for each in _CERTIFICATE.findall(text)))
    if not found:
        raise ValueError(f"has no certificate, which begins with `{_BEGIN}`: PEM, or PEM in base64")
    if text.count(_BEGIN) != len(_CERTIFICATE.findall(text)):
        raise ValueError(f"ends in the middle of a certificate, without `{_END}`: was it cut off at the end?")
    return found


def _pem(body: str) -> str:
    data = _decoded("".join(body.split()))
    if data[:1] != bytes([_SEQUENCE]):
        raise ValueError("has something else than a certificate between its two marks")
    lines = textwrap.wrap(base64.b64encode(data).decode(), _LINE)
    return "\n".join((_BEGIN, *lines, _END, ""))


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError("is neither PEM nor base64") from error
