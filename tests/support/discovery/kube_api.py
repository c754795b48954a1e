"""API servers of a cluster, as `discover` meets them: lists in pages, watches, bookmarks, and every trouble.

A `KubeCluster` holds the objects and their history; each `KubeApi` serves it over real TLS with a certificate
of its own, as masters do. What it answers is that of a kube-apiserver (API concepts; k8s.io/apiserver), for
those resources that `discover` watches.
"""

import contextlib
import http.server
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self
from urllib.parse import parse_qs, urlsplit

import trustme

NAME = "kubernetes.default.svc"
TOKEN = "a-token-of-the-test"  # noqa: S105  # opens nothing

NODES = "/api/v1/nodes"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/openshift-ingress/endpointslices"
API_SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
CONTROLLERS = "/apis/operator.openshift.io/v1/namespaces/openshift-ingress-operator/ingresscontrollers"
CONFIGMAPS = "/api/v1/namespaces/kube-system/configmaps"
MASTER = "node-role.kubernetes.io/master"

Values = dict[str, "object"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One entry of the history."""

    version: int
    path: str
    type: str
    object: Values


class KubeCluster:
    """The objects by path and name, and what became of them; the history can be forgotten or replaced."""

    def __init__(self, *, version: int = 1000) -> None:
        self.changed = threading.Condition()
        self.version = version
        self.oldest = version
        self._objects: dict[str, dict[str, Values]] = {}
        self._history: list[Event] = []

    def put(self, path: str, value: Values) -> None:
        """Create or replace an object."""
        with self.changed:
            name = str(value["metadata"]["name"])
            objects = self._objects.setdefault(path, {})
            self._note(path, "MODIFIED" if name in objects else "ADDED", value)
            objects[name] = value

    def remove(self, path: str, name: str) -> None:
        """Remove an object."""
        with self.changed:
            self._note(path, "DELETED", self._objects[path].pop(name))

    def clear(self, path: str) -> None:
        """Remove all objects of a path, each with its event."""
        for name in self.names(path):
            self.remove(path, name)

    def names(self, path: str) -> list[str]:
        """Return the names of the objects of a path."""
        return sorted(self._objects.get(path, {}))

    def forget(self) -> None:
        """Forget the history (etcd's compaction): older versions are answered with 410."""
        with self.changed:
            self.version += 1
            self.oldest = self.version
            self._history.clear()
            self.changed.notify_all()

    def restart_history(self) -> None:
        """Begin to count anew (etcd restored from a backup): versions that clients know are in the future."""
        with self.changed:
            self.version = self.oldest = 1
            self._history.clear()
            self.changed.notify_all()

    def listed(self, path: str, query: Mapping[str, str]) -> tuple[int, list[Values]]:
        """Return the version and the objects that selectors choose, by name."""
        with self.changed:
            objects = [value for _, value in sorted(self._objects.get(path, {}).items())]
            return self.version, [each for each in objects if selected(each, query)]

    def since(self, path: str, version: int) -> list[Event]:
        """Return the events of a path after a version."""
        return [each for each in self._history if each.path == path and each.version > version]

    def _note(self, path: str, kind: str, value: Values) -> None:
        self.version += 1
        value["metadata"]["resourceVersion"] = str(self.version)
        self._history.append(Event(version=self.version, path=path, type=kind, object=value))
        self.changed.notify_all()


def selected(value: Values, query: Mapping[str, str]) -> bool:
    """Tell whether selectors choose an object: of labels `key=value` and `key`, of fields its name."""
    labels = value["metadata"].get("labels", {})
    for term in filter(None, query.get("labelSelector", "").split(",")):
        key, _, wanted = term.partition("=")
        if key not in labels or ("=" in term and labels[key] != wanted):
            return False
    field_selector = query.get("fieldSelector")
    return field_selector is None or field_selector == f"metadata.name={value['metadata']['name']}"


def node(name: str, *addresses: str, labels: Mapping[str, str] | None = None, ready: bool = True) -> Values:
    """Return a Node as a kubelet reports it."""
    return {
        "metadata": {"name": name, "labels": {MASTER: "", **(labels or {})}},
        "status": {
            "addresses": [
                *({"type": "InternalIP", "address": each} for each in addresses),
                {"type": "Hostname", "address": name},
            ],
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }


def router_slice(
    name: str, places: Mapping[str, str], *, controller: str = "default", http: int = 80, https: int = 443
) -> Values:
    """Return an EndpointSlice of routers: addresses by the name of their Node; `!NODE` is one not ready."""
    return {
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/service-name": f"router-internal-{controller}"},
        },
        "addressType": "IPv4",
        "endpoints": [
            {
                "addresses": [address],
                "conditions": {"ready": not where.startswith("!")},
                "nodeName": where.removeprefix("!"),
            }
            for where, address in places.items()
        ],
        "ports": [
            {"name": "http", "port": http, "protocol": "TCP"},
            {"name": "https", "port": https, "protocol": "TCP"},
            {"name": "metrics", "port": 1936, "protocol": "TCP"},
        ],
    }


def api_slice(*addresses: str) -> Values:
    """Return the EndpointSlice `default/kubernetes` that API servers keep."""
    return {
        "metadata": {"name": "kubernetes", "labels": {"kubernetes.io/service-name": "kubernetes"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [each], "conditions": {"ready": True}} for each in addresses],
        "ports": [{"name": "https", "port": 6443, "protocol": "TCP"}],
    }


@dataclass(slots=True, kw_only=True)
class Trouble:
    """What a server does instead of answering: a status with headers, `body` in place of all, or silence."""

    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    hangs: bool = False


class KubeApi:
    """One API server. `asked` holds the path and query of each request that it has got."""

    def __init__(
        self,
        cluster: KubeCluster,
        authority: trustme.CA,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        name: str = NAME,
    ) -> None:
        self.cluster = cluster
        self.asked: list[str] = []
        self.tokens = {TOKEN}
        self.troubles: dict[str, Trouble] = {}
        self._ended = threading.Event()
        self._generation = 0
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert(name).configure_cert(context)
        context.verify_mode = ssl.CERT_OPTIONAL
        authority.configure_trust(context)
        self._server = _Server((host, port), _handler(self), context)
        self.host, self.port = host, int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def address(self) -> str:
        """Address and port."""
        return f"{self.host}:{self.port}"

    def stop(self) -> None:
        """End, with all watches."""
        if not self._ended.is_set():
            self._ended.set()
            self.close_watches()
            self._server.shutdown()
            self._server.server_close()
            self._server.cut()

    def close_watches(self) -> None:
        """End every watch now, as a server does that is told to shut down."""
        with self.cluster.changed:
            self._generation += 1
            self.cluster.changed.notify_all()

    @contextlib.contextmanager
    def in_trouble(self, trouble: Trouble, *, path: str = "") -> Iterator[None]:
        """Answer requests whose path begins so with a trouble; watches that go on end."""
        self.troubles[path] = trouble
        if not trouble.hangs:
            self.close_watches()
        try:
            yield
        finally:
            del self.troubles[path]
            with self.cluster.changed:
                self.cluster.changed.notify_all()

    def trouble(self, path: str) -> Trouble | None:
        """Return what a request of this path meets."""
        return next((each for start, each in self.troubles.items() if path.startswith(start)), None)

    def answer(self, request: "http.server.BaseHTTPRequestHandler") -> None:
        """Answer one request."""
        parts = urlsplit(request.path)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        self.asked.append(request.path)
        trouble = self.trouble(parts.path)
        if trouble is not None:
            self._be_troubled(request, parts.path, trouble)
        elif not self._knows(request):
            _refuse(request, 401, "Unauthorized")
        elif query.get("watch") == "1":
            self._watch(request, parts.path, query)
        else:
            self._list(request, parts.path, query)

    def _knows(self, request: "http.server.BaseHTTPRequestHandler") -> bool:
        token = (request.headers.get("Authorization") or "").removeprefix("Bearer ")
        return token in self.tokens or bool(request.connection.getpeercert())

    def _be_troubled(
        self, request: "http.server.BaseHTTPRequestHandler", path: str, trouble: Trouble
    ) -> None:
        if trouble.hangs:
            with self.cluster.changed:
                self.cluster.changed.wait_for(
                    lambda: self._ended.is_set() or self.trouble(path) is not trouble
                )
            request.close_connection = True
        elif trouble.body is not None:
            _send(request, 200, trouble.body)
        else:
            _refuse(request, trouble.status or 500, "in trouble", headers=trouble.headers)

    def _list(
        self, request: "http.server.BaseHTTPRequestHandler", path: str, query: Mapping[str, str]
    ) -> None:
        version, found = self.cluster.listed(path, query)
        begin, limit = int(query.get("continue", "0")), int(query.get("limit", "500"))
        more = {"continue": str(begin + limit)} if begin + limit < len(found) else {}
        answer = {
            "kind": "List",
            "metadata": {"resourceVersion": str(version), **more},
            "items": found[begin : begin + limit],
        }
        _send(request, 200, json.dumps(answer).encode())

    def _watch(
        self, request: "http.server.BaseHTTPRequestHandler", path: str, query: Mapping[str, str]
    ) -> None:
        cluster, generation, version = self.cluster, self._generation, int(query["resourceVersion"])
        until = time.monotonic() + float(query.get("timeoutSeconds", "60"))
        _begin_chunks(request)
        with cluster.changed:
            while not self._ended.is_set() and generation == self._generation:
                if not cluster.oldest <= version <= cluster.version:
                    _event(request, "ERROR", {"kind": "Status", "code": 410, "message": "too old"})
                    break
                for each in cluster.since(path, version):
                    if selected(each.object, query):
                        _event(request, each.type, each.object)
                version = cluster.version
                left = until - time.monotonic()
                if left <= 0:
                    _event(request, "BOOKMARK", {"metadata": {"resourceVersion": str(version)}})
                    break
                cluster.changed.wait(left)
                if (trouble := self.trouble(path)) is not None and trouble.hangs:
                    cluster.changed.wait_for(
                        lambda trouble=trouble: self._ended.is_set() or self.trouble(path) is not trouble
                    )
        _end_chunks(request)


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(
        self,
        address: tuple[str, int],
        handler: type[http.server.BaseHTTPRequestHandler],
        context: ssl.SSLContext,
    ) -> None:
        super().__init__(address, handler)
        self._context = context
        self._open: set[ssl.SSLSocket] = set()

    def finish_request(self, request: object, client_address: object) -> None:
        """Shake hands in the thread of the connection, so that a slow client stops nobody else."""
        with contextlib.suppress(OSError):
            secured = self._context.wrap_socket(request, server_side=True)
            self._open.add(secured)
            try:
                super().finish_request(secured, client_address)
            finally:
                self._open.discard(secured)
                secured.close()

    def cut(self) -> None:
        """End all connections."""
        for each in tuple(self._open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of clients that went away."""


def _handler(api: KubeApi) -> type[http.server.BaseHTTPRequestHandler]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            api.answer(self)

        def log_message(self, *_: object) -> None:
            """Write nothing."""

    return Handler


def _send(
    request: http.server.BaseHTTPRequestHandler,
    status: int,
    body: bytes,
    headers: Mapping[str, str] | None = None,
) -> None:
    request.send_response(status)
    for key, value in (headers or {}).items():
        request.send_header(key, value)
    request.send_header("Content-Type", "application/json")
    request.send_header("Content-Length", str(len(body)))
    request.end_headers()
    request.wfile.write(body)


def _refuse(
    request: http.server.BaseHTTPRequestHandler,
    status: int,
    message: str,
    headers: Mapping[str, str] | None = None,
) -> None:
    body = {"kind": "Status", "status": "Failure", "message": message, "code": status}
    _send(request, status, json.dumps(body).encode(), headers)


def _begin_chunks(request: http.server.BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.send_header("Content-Type", "application/json")
    request.send_header("Transfer-Encoding", "chunked")
    request.end_headers()


def _event(request: http.server.BaseHTTPRequestHandler, kind: str, value: Values) -> None:
    line = json.dumps({"type": kind, "object": value}).encode() + b"\n"
    request.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")


def _end_chunks(request: http.server.BaseHTTPRequestHandler) -> None:
    request.wfile.write(b"0\r\n\r\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Files that let `discover` in."""

    authority: Path
    token: Path

    def section(self, *servers: KubeApi) -> Values:
        """Return the section `kubernetes` that asks these servers."""
        return {
            "token_file": str(self.token),
            "ca": str(self.authority),
            "api": [each.address for each in servers],
        }


def credentials(directory: Path, authority: trustme.CA) -> Credentials:
    """Write the files."""
    files = Credentials(authority=directory / "ca.crt", token=directory / "token")
    authority.cert_pem.write_to_path(files.authority)
    files.token.write_text(TOKEN)
    return files
