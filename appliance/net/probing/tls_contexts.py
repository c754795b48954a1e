"""TLS client contexts for health checks: one for each CA file, shared by every server that names it.

A context costs a millisecond to make and holds the whole CA bundle in memory. A file that has changed is read
again, so a renewed CA needs no reload. While a file cannot be used (it is being replaced, or this machine has
no descriptor left) what was read last goes on being used: that is no reason to take servers down.

Without a CA file any certificate will do (HAProxy's `verify none`, which is what OpenShift's HAProxy uses).
With one, the certificate must be signed by it; where the check names the server (`sni`), it must be for that
name as well.
"""

import os
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Final

Version = tuple[int, int, int, int]

_NEVER: Final[Version] = (0, 0, 0, 0)


class AuthorityError(Exception):
    """The CA file is missing, unreadable, or holds no certificate."""


class TlsContexts:
    """Contexts by CA file.

    `on_trouble` is called once with a CA file and the reason when what was read of it last is used on, and
    with "" for a reason when the file can be used again.
    """

    def __init__(self, on_trouble: Callable[[str, str], None] | None = None) -> None:
        self._on_trouble = on_trouble
        self._anything = _context()
        self._verifying: dict[tuple[str, bool], _Authority] = {}
        self._troubled: set[str] = set()

    def context(self, *, verify: str | None, named: bool) -> ssl.SSLContext:
        """Return the context for a CA file; `verify` None is for any certificate.

        `named` is whether the certificate has to be for the name that the check asks for. Raises
        AuthorityError where the file could never be used.
        """
        if verify is None:
            return self._anything
        authority = self._verifying.setdefault((verify, named), _Authority(verify, named=named))
        try:
            context = authority.refreshed()
        except AuthorityError as error:
            if authority.context is None:
                raise
            self._report(verify, str(error))
            return authority.context
        self._report(verify, "")
        return context

    def inspect(self, verify: str) -> None:
        """Read a CA file as it is now, so that a reload can refuse a bad one; raises AuthorityError."""
        _Authority(verify, named=False).refreshed()

    def _report(self, verify: str, reason: str) -> None:
        if bool(reason) is (verify in self._troubled):
            return
        if reason:
            self._troubled.add(verify)
        else:
            self._troubled.remove(verify)
        if self._on_trouble:
            self._on_trouble(verify, reason)


class _Authority:
    """A CA file, with the context of its last good version."""

    __slots__ = ("_named", "_path", "_refused", "_version", "context")

    def __init__(self, path: str, *, named: bool) -> None:
        self._path = path
        self._named = named
        self._version = _NEVER
        self._refused = ""
        self.context: ssl.SSLContext | None = None

    def refreshed(self) -> ssl.SSLContext:
        """Return the context of the file as it is now; raises AuthorityError."""
        try:
            version = _version(Path(self._path).stat())
            if version != self._version:
                self._load(version)
        except OSError as error:
            raise AuthorityError(f"CA file {self._path}: {error.strerror or error}") from error
        if self.context is None or self._refused:
            raise AuthorityError(f"CA file {self._path}: {self._refused}")
        return self.context

    def _load(self, version: Version) -> None:
        try:
            self.context = _verifying(self._path, named=self._named)
        except ssl.SSLError as error:  # no certificate in it: this version need not be read again
            self._refused = error.strerror or str(error)
        else:
            self._refused = ""
        self._version = version


def _version(status: os.stat_result) -> Version:
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def _context() -> ssl.SSLContext:
    context = _client()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _client() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # A check makes one handshake. A server of TLS 1.2 may ask for more of them on the same connection
    # (HelloRequest, RFC 5246 s.7.4.1.1) and have us compute for it again and again.
    context.options |= ssl.OP_NO_RENEGOTIATION
    return context


def _verifying(verify: str, *, named: bool) -> ssl.SSLContext:
    context = _client()
    context.check_hostname = named
    context.load_verify_locations(cafile=verify)
    return context
