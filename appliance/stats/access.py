"""Access control: networks, the one user with a password, TLS. Built from the files that a snapshot names."""

import contextlib
import hashlib
import hmac
import secrets
from base64 import b64decode
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from gevent import ssl

from appliance.core.balancing.access_lists import NetworkSet
from appliance.model.snapshot.snapshot import Stats
from appliance.net.files import state_files
from appliance.net.files.state_files import FileUnusable

_LONGEST_PASSWORD: Final = 1024
_LONGEST_HEADER: Final = 4096
_BASIC: Final = "basic "


class AccessError(Exception):
    """A file that a snapshot names for access control cannot be used; the message says which, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebAccess:
    """A snapshot's access control; None means no limit, `credentials` are `user:password`.

    `certificate` is a hash of the files behind `context`. `token` is only in the forms of our own pages: a
    browser sends its remembered password with the forms of other sites too.
    """

    allowed: NetworkSet | None
    denied: NetworkSet | None
    credentials: bytes | None
    context: ssl.SSLContext | None
    certificate: bytes
    admin: bool
    token: str

    def allows(self, peer: bytes) -> bool:
        """Return whether a client may connect, by its packed address."""
        if self.denied is not None and peer in self.denied:
            return False
        return self.allowed is None or peer in self.allowed

    def after(self, former: "WebAccess | None") -> "WebAccess":
        """Return this with the former context, if certificate and key are the same: connections continue."""
        if former is None or self.certificate != former.certificate:
            return self
        return replace(self, context=former.context)

    def admits(self, authorization: str) -> bool:
        """Return whether the Authorization header of a request is right, if one is required."""
        if self.credentials is None:
            return True
        given = _basic(authorization)
        return given is not None and hmac.compare_digest(given, self.credentials)


def web_access(stats: Stats) -> WebAccess:
    """Return the access control of a snapshot; raises AccessError."""
    # The hash first: if files change meanwhile it is outdated, and the next reload reads them again.
    certificate = _content(stats.certificate, stats.key)
    return WebAccess(
        allowed=NetworkSet(stats.allow) if stats.allow else None,
        denied=NetworkSet(stats.deny) if stats.deny else None,
        credentials=_credentials(stats),
        context=_context(stats.certificate, stats.key) if stats.certificate and stats.key else None,
        certificate=certificate,
        admin=stats.admin and stats.user is not None,
        token=secrets.token_urlsafe(),
    )


def _credentials(stats: Stats) -> bytes | None:
    if stats.user is None:
        return None
    password = stats.password if stats.password_file is None else _password(stats.password_file)
    return f"{stats.user}:{password}".encode()


def _password(path: str) -> str:
    """Return the first line of a file: editors append a line break."""
    try:
        data = state_files.read(Path(path), limit=_LONGEST_PASSWORD)
        text = data.decode() if data is not None else None
    except (FileUnusable, UnicodeDecodeError) as error:
        raise AccessError(f"the password file {path}: {error}") from error
    if text is None:
        raise AccessError(f"the password file {path}: there is none")
    password = text.partition("\n")[0].removesuffix("\r")
    if not password:
        raise AccessError(f"the password file {path}: it is empty")
    return password


def _content(*paths: str | None) -> bytes:
    """Return a hash of files; for unreadable ones `_context` has the reason."""
    hashed = hashlib.sha256()
    for path in filter(None, paths):
        with contextlib.suppress(FileUnusable):
            hashed.update(hashlib.sha256(state_files.read(Path(path)) or b"").digest())
    return hashed.digest()


def _context(certificate: str, key: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        reason = getattr(error, "strerror", None) or str(error)
        raise AccessError(f"the certificate {certificate} with the key {key}: {reason}") from error
    return context


def _basic(header: str) -> bytes | None:
    if len(header) > _LONGEST_HEADER or not header.lower().startswith(_BASIC):
        return None
    try:
        return b64decode(header[len(_BASIC) :].strip(), validate=True)
    except ValueError:
        return None
