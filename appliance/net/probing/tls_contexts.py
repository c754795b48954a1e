"""TLS client contexts for health checks: one per CA file, shared by every server that uses it.

A context takes a millisecond to create and holds the whole CA bundle in memory. A changed file is read again,
so a renewed CA needs no reload. While a file cannot be used (it is being replaced, or this machine has no
descriptor left), the last version read stays in use: that is no reason to take servers down.

Without a CA file any certificate is accepted (HAProxy's `verify none`, as in OpenShift's HAProxy). With one,
the certificate must be signed by it; if the check names the server (`sni`), it must also be for that name.
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

    `on_trouble` is called once with a CA file and the reason when its last version stays in use, and with ""
    as the reason when the file can be used again.
    """

    def __init__(self, on_trouble: Callable[[str, str], None] | None = None) -> None:
        self._on_trouble = on_trouble
        self._anything = _context()
        self._verifying: dict[tuple[str, bool], _Authority] = {}
        self._troubled: set[str] = set()

    def context(self, *, verify: str | None, named: bool) -> ssl.SSLContext:
        """Return the context for a CA file; with `verify` None, any certificate is accepted.

        `named` is whether the certificate must be for the name that the check sends. Raises AuthorityError if
        the file could never be used.
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
        """Read a CA file, so that a reload can refuse a bad one; raises AuthorityError."""
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
        """Return the context of the file's current content; raises AuthorityError."""
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
        except ssl.SSLError as error:  # no certificate: do not read this version again
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
    # A check makes one handshake. A TLS 1.2 server may request more on the same connection (HelloRequest, RFC
    # 5246 s.7.4.1.1), each of which costs processor time.
    context.options |= ssl.OP_NO_RENEGOTIATION
    return context


def _verifying(verify: str, *, named: bool) -> ssl.SSLContext:
    context = _client()
    context.check_hostname = named
    context.load_verify_locations(cafile=verify)
    return context
