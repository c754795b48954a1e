"""A kubeconfig: the address of an API server, the CA of its certificate, and our credentials.

If a file has several contexts, the current one counts. Programs that must be run for a token (exec) and
methods that Kubernetes has dropped (auth-provider, passwords) are refused by name, as is a connection whose
certificate is not verified.
"""

import base64
import binascii
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from appliance.model.document.document import read
from appliance.model.document.tree import DocumentError, Plain

_HTTPS_PORT: Final = 443
_REFUSED_USERS: Final = ("exec", "auth-provider", "username", "password", "impersonate", "as")


class KubeconfigError(Exception):
    """The file is no usable kubeconfig; the message names the wrong key, and never shows a secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kubeconfig:
    """The current context. A value is in the file itself (bytes, text) or in another file (a path)."""

    host: str
    port: int
    server_name: str | None
    ca: bytes | None
    ca_file: str | None
    token: str | None
    token_file: str | None
    certificate: bytes | None
    certificate_file: str | None
    key: bytes | None
    key_file: str | None


def decode(text: bytes) -> Kubeconfig:
    """Return the content of a file; raises KubeconfigError."""
    try:
        value = read(text).value
    except DocumentError as error:
        raise KubeconfigError(f"line {error.place.line}: {error.message}") from error
    context = _named(value, "contexts", _text(value, "current-context", ""), "context")
    cluster = _named(value, "clusters", _text(context, "cluster", "context."), "cluster")
    user = _named(value, "users", _text(context, "user", "context."), "user")
    for key in _REFUSED_USERS:
        if user.get(key) is not None:
            raise KubeconfigError(f"user.{key}: not supported: a token or a client certificate is")
    for key in ("insecure-skip-tls-verify", "proxy-url"):
        if cluster.get(key):
            raise KubeconfigError(f"cluster.{key}: not supported")
    host, port = _server(cluster)
    return Kubeconfig(
        host=host,
        port=port,
        server_name=_optional(cluster, "tls-server-name", "cluster."),
        ca=_data(cluster, "certificate-authority-data", "cluster."),
        ca_file=_optional(cluster, "certificate-authority", "cluster."),
        token=_optional(user, "token", "user."),
        token_file=_optional(user, "tokenFile", "user."),
        certificate=_data(user, "client-certificate-data", "user."),
        certificate_file=_optional(user, "client-certificate", "user."),
        key=_data(user, "client-key-data", "user."),
        key_file=_optional(user, "client-key", "user."),
    )


_Mapping = dict[str, Plain]


def _named(value: _Mapping, section: str, name: str, inner: str) -> _Mapping:
    """Return the item with a name from a list: from `contexts`, for example."""
    things = value.get(section)
    for each in things if isinstance(things, list) else ():
        if isinstance(each, dict) and each.get("name") == name:
            found = each.get(inner)
            if isinstance(found, dict):
                return found
    raise KubeconfigError(f"{section}: no {inner} of the name that is wanted")


def _text(value: _Mapping, key: str, where: str) -> str:
    found = _optional(value, key, where)
    if found is None:
        raise KubeconfigError(f"{where}{key}: is missing")
    return found


def _optional(value: _Mapping, key: str, where: str) -> str | None:
    found = value.get(key)
    if found is None or found == "":
        return None
    if isinstance(found, str) and found.isprintable():
        return found
    raise KubeconfigError(f"{where}{key}: must be text")


def _data(value: _Mapping, key: str, where: str) -> bytes | None:
    text = _optional(value, key, where)
    if text is None:
        return None
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise KubeconfigError(f"{where}{key}: is no base64") from error


def _server(cluster: _Mapping) -> tuple[str, int]:
    url = _text(cluster, "server", "cluster.")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise KubeconfigError("cluster.server: is no URL") from error
    if parts.scheme != "https" or not host or parts.path not in ("", "/"):
        raise KubeconfigError("cluster.server: must be `https://HOST:PORT`")
    return host, port or _HTTPS_PORT
