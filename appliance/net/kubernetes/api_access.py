"""Access to the API and our credentials: read from the operator's files, at each request.

Tokens rotate (a projected one each hour), and so do certificates. The files are small; reading them before
each request, once in ten seconds, needs no watch that could miss a change. A TLS context is recreated only if
its sources have changed.
"""

import contextlib
import hashlib
import os
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from appliance.model.snapshot.discovery import ApiAddress, Kubernetes
from appliance.net.files import state_files
from appliance.net.files.state_files import FileUnusable
from appliance.wire.kubernetes import kubeconfig
from appliance.wire.kubernetes.kubeconfig import Kubeconfig, KubeconfigError
from appliance.wire.literal import is_literal

SERVER_NAME: Final = "kubernetes.default.svc"
"""A name in the certificate of every API server, OpenShift's and kubeadm's."""

_LIMIT: Final = 1 << 20  # bytes of one file


class Failure(StrEnum):
    """The kinds of failure, as log and status show them."""

    UNREACHABLE = "unreachable"
    CERTIFICATE = "certificate"
    SILENT = "silent"
    NOT_HTTP = "not-http"
    TOO_LARGE = "too-large"
    NOT_UNDERSTOOD = "not-understood"
    BUSY = "busy"
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    MISSING = "missing"
    REFUSED = "refused"
    EXPIRED = "expired"
    ERROR = "error"
    INTERNAL = "internal"


class ApiError(Exception):
    """One request failed; `retry_after` is the seconds to wait that the server requests, None for none."""

    def __init__(self, failure: Failure, message: str, *, retry_after: float | None = None) -> None:
        self.failure = failure
        self.message = message
        self.retry_after = retry_after
        super().__init__(f"{failure}: {message}")


class AccessError(Exception):
    """The files with our credentials or the API's CA cannot be used; says which and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The access data of one request. `digest` differs if `context` does: then connections are reopened."""

    context: ssl.SSLContext
    server_name: str
    token: str | None
    addresses: tuple[ApiAddress, ...]
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Material:
    """Certificates and key from the files, PEM."""

    ca: bytes
    certificate: bytes | None
    key: bytes | None

    def digest(self) -> str:
        parts = (each or b"" for each in (self.ca, self.certificate, self.key))
        return hashlib.sha256(b"".join(hashlib.sha256(each).digest() for each in parts)).hexdigest()


class ApiAccess:
    """Reads the files of one configuration; one object per thread."""

    def __init__(self, settings: Kubernetes) -> None:
        self._settings = settings
        self._made: tuple[str, ssl.SSLContext] | None = None

    def read(self) -> Access:
        """Return the access data now in the files; raises AccessError."""
        settings = self._settings
        given = _kubeconfig(settings.kubeconfig) if settings.kubeconfig else None
        material = _material(settings, given)
        return Access(
            context=self._context(material),
            server_name=settings.server_name or _server_name(given),
            token=_token(settings, given),
            addresses=(*settings.api, *([ApiAddress(host=given.host, port=given.port)] if given else ())),
            digest=material.digest(),
        )

    def _context(self, material: _Material) -> ssl.SSLContext:
        digest = material.digest()
        if self._made is None or self._made[0] != digest:
            self._made = (digest, _made(material))
        return self._made[1]


def _kubeconfig(path: str) -> Kubeconfig:
    try:
        return kubeconfig.decode(_content(path))
    except KubeconfigError as error:
        raise AccessError(f"{path}: {error}") from error


def _server_name(given: Kubeconfig | None) -> str:
    """Return the name to check; the other masters do not have an address from a kubeconfig."""
    if given is None:
        return SERVER_NAME
    return given.server_name or (SERVER_NAME if is_literal(given.host) else given.host)


def _token(settings: Kubernetes, given: Kubeconfig | None) -> str | None:
    path = settings.token_file or (_beside(settings, given.token_file) if given else None)
    if path is None:
        return given.token if given else None
    token = _content(path).strip()
    if not token or not token.isascii() or not token.decode("ascii").isprintable() or b" " in token:
        raise AccessError(f"{path}: holds no token")
    return token.decode("ascii")


def _material(settings: Kubernetes, given: Kubeconfig | None) -> _Material:
    if given is None:
        return _Material(ca=_content(settings.ca or ""), certificate=None, key=None)
    ca = _content(settings.ca) if settings.ca else _of(settings, given.ca, given.ca_file)
    if ca is None:
        raise AccessError(f"{settings.kubeconfig}: cluster.certificate-authority: is missing")
    # A token next to the kubeconfig replaces its identity.
    alone = settings.token_file is None
    return _Material(
        ca=ca,
        certificate=_of(settings, given.certificate, given.certificate_file) if alone else None,
        key=_of(settings, given.key, given.key_file) if alone else None,
    )


def _of(settings: Kubernetes, data: bytes | None, path: str | None) -> bytes | None:
    """Return the data in the kubeconfig itself, which wins, or in the file that it names."""
    if data is not None or path is None:
        return data
    return _content(_beside(settings, path) or "")


def _beside(settings: Kubernetes, path: str | None) -> str | None:
    """Return a path of a kubeconfig, which is relative to the kubeconfig's directory."""
    return str(Path(settings.kubeconfig or "/").parent / path) if path else None


def _content(path: str) -> bytes:
    try:
        found = state_files.read(Path(path), limit=_LIMIT)
    except FileUnusable as error:
        raise AccessError(f"{path}: {error}") from error
    if found is None:
        raise AccessError(f"{path}: there is no such file")
    return found


def _made(material: _Material) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # checks certificate and name
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_verify_locations(cadata=material.ca.decode("ascii"))
    except (ssl.SSLError, ValueError) as error:
        raise AccessError(f"the certificates of the authority cannot be used: {error}") from error
    if material.certificate is not None and material.key is not None:
        try:
            with _as_file(material.certificate + b"\n" + material.key) as path:
                context.load_cert_chain(path, password=_no_password)
        except (ssl.SSLError, OSError) as error:
            raise AccessError(f"the client certificate cannot be used: {error}") from error
    return context


@contextlib.contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """Give OpenSSL the file that it requires: one in memory, which no other process can open."""
    descriptor = os.memfd_create("client-certificate", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, content)
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def _no_password() -> str:
    """Answer OpenSSL's request for the password of a key: it would prompt on the terminal, and wait."""
    return ""
