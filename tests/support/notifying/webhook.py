"""A real HTTP server that keeps what is posted to it."""

import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from support.values.certificates import Certificates


class Webhook:
    """A server that keeps what was posted; `status` is what it answers, `stalls` that it never does.

    With certificates it speaks HTTPS.
    """

    def __init__(self, *, certificates: Certificates | None = None) -> None:
        self.posted: list[tuple[str, dict[str, str], object]] = []
        self.status = 200
        self.stalls = False
        outer = self

        class Taker(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.posted.append((self.path, dict(self.headers), json.loads(body)))
                if outer.stalls:
                    self.rfile.read(1)  # until the client has gone
                    return
                self.send_response(outer.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # its signature
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Taker)
        scheme = "http"
        if certificates is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificates.chain, certificates.key)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
            scheme = "https"
        self.url = f"{scheme}://127.0.0.1:{self._server.server_port}/hook?a=1"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        """Stop."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
