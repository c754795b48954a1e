"""TLS client contexts for health checks: one for each CA file, shared by every server that names it.

A context costs a millisecond and the whole CA bundle in memory. A file that has changed is read again, so a
renewed CA needs no reload.
"""

import ssl
from pathlib import Path


class AuthorityError(Exception):
    """The CA file is missing, unreadable, or holds no certificate."""


class TlsContexts:
    """Contexts by CA file. With a name (SNI) the certificate must be for that name as well."""

    def __init__(self) -> None:
        self._anything = _context()
        self._verifying: dict[tuple[str, bool], tuple[int, ssl.SSLContext]] = {}

    def context(self, *, verify: str | None, named: bool) -> ssl.SSLContext:
        """Return the context for a CA file, None for any certificate; raises AuthorityError."""
        if verify is None:
            return self._anything
        try:
            version = Path(verify).stat().st_mtime_ns
            known = self._verifying.get((verify, named))
            if known is not None and known[0] == version:
                return known[1]
            context = _verifying(verify, named=named)
        except OSError as error:  # ssl.SSLError is one: no certificate in the file
            raise AuthorityError(f"CA file {verify}: {error.strerror or error}") from error
        self._verifying[verify, named] = (version, context)
        return context


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _verifying(verify: str, *, named: bool) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = named
    context.load_verify_locations(cafile=verify)
    return context
