"""A server of much data: `python sized_server.py PORT SIZE [--proxied]`.

It sends `content(SIZE)` at once, ends its direction, and waits until the client has ended the other one. With
`--proxied` each connection has to begin with a PROXY v2 header.
"""

import random
import socketserver
import sys
from typing import Final

_BLOCK: Final = random.Random(23).randbytes(65521)  # noqa: S311  # no secret


def content(size: int) -> bytes:
    """Return what each connection is sent."""
    return (_BLOCK * (size // len(_BLOCK) + 1))[:size]


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 100


class _Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        """Serve one connection."""
        if "--proxied" in sys.argv:
            head = self.rfile.read(16)
            assert head.startswith(b"\r\n\r\n\0\r\nQUIT\n")
            self.rfile.read(int.from_bytes(head[14:16], "big"))
        self.wfile.write(content(int(sys.argv[2])))
        self.request.shutdown(1)
        self.rfile.read()


if __name__ == "__main__":
    with _Server(("", int(sys.argv[1])), _Handler) as server:
        server.serve_forever()
