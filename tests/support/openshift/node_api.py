"""A Kubernetes API as far as a stand-in asks it: a list of masters, which a test changes."""

import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

from support.network.namespaces import Node


class NodeApi:
    """Serves the masters' names and addresses on a node; `failing` makes every answer a 503."""

    def __init__(self, node: Node) -> None:
        self.masters: Mapping[str, str] = {}
        self.failing = False
        self.asked = 0
        api = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                api.asked += 1
                items = [{"name": name, "address": address} for name, address in api.masters.items()]
                body = json.dumps({"items": items}).encode()
                self.send_response(503 if api.failing else 200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002  # its name there
                """Say nothing."""

        with node.inside():
            self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/api/v1/nodes"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
