"""Servers at many addresses and ports in one process, which tell who they are in whatever they are asked.

Each speaks plain and, to a client that begins with a TLS handshake, TLS. A request of HTTP is answered with
200 and `ok ADDRESS:PORT`, or as a test says; a PROXY header before it is told in the answer. A connection on
which nothing is said stays open.
"""

import argparse
import contextlib
import json
import socket
import socketserver
import ssl
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Self

from support.processes.remote import Remote
from support.processes.steering import say

_V2: Final = b"\r\n\r\n\x00\r\nQUIT\n"
_PATIENCE: Final = 120.0
_HANDSHAKE: Final = b"\x16"

Endpoint = tuple[str, int]


class ServerFarm:
    """Running servers. Use it as a context manager.

    `certificate` is a chain and its key. Servers are named by their address and port.
    """

    def __init__(self, endpoints: Sequence[Endpoint], certificate: tuple[Path, Path]) -> None:
        chain, key = certificate
        named = [f"{address} {port}" for address, port in sorted(endpoints)]
        self._remote = Remote("support.peers.server_farm", f"--chain={chain}", f"--key={key}", *named)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._remote.close()

    def behave(self, how: str, addresses: Sequence[str]) -> None:
        """Have the servers at these addresses behave: `well`, `closed`, `unready` (500) or `wrong` (text)."""
        self._remote.ask("behave", how=how, addresses=list(addresses))

    def connections(self) -> dict[str, int]:
        """Return how many connections came, by `CLIENT ADDRESS:PORT`; those to a closed one do not count."""
        counts = self._remote.ask("count")["counts"]
        assert isinstance(counts, dict)
        return {key: int(str(value)) for key, value in counts.items()}


class _Farm:
    def __init__(self, context: ssl.SSLContext) -> None:
        self.context = context
        self.how: dict[str, str] = {}
        self.counts: Counter[str] = Counter()
        self.listening: dict[Endpoint, _Server] = {}

    def open(self, endpoint: Endpoint) -> None:
        server = _Server(self, endpoint)
        self.listening[endpoint] = server
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def close(self, endpoint: Endpoint) -> None:
        server = self.listening.pop(endpoint)
        server.shutdown()
        server.server_close()

    def behave(self, how: str, addresses: Sequence[str], endpoints: Sequence[Endpoint]) -> None:
        for endpoint in (each for each in endpoints if each[0] in addresses):
            self.how[endpoint[0]] = how
            if how == "closed" and endpoint in self.listening:
                self.close(endpoint)
            if how != "closed" and endpoint not in self.listening:
                self.open(endpoint)


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 1024

    def __init__(self, farm: _Farm, endpoint: Endpoint) -> None:
        self.farm, self.endpoint = farm, endpoint
        self.address_family = socket.AF_INET6 if ":" in endpoint[0] else socket.AF_INET
        super().__init__(endpoint, _Conversation)


class _Conversation(socketserver.BaseRequestHandler):
    server: _Server
    request: socket.socket

    def handle(self) -> None:
        farm, (address, port) = self.server.farm, self.server.endpoint
        farm.counts[f"{self.client_address[0]} {address}:{port}"] += 1
        self.request.settimeout(_PATIENCE)
        with contextlib.suppress(OSError):
            self._converse(farm, address, port)

    def _converse(self, farm: _Farm, address: str, port: int) -> None:
        header = self._proxy_header()
        stream = self.request
        if stream.recv(1, socket.MSG_PEEK) == _HANDSHAKE:
            stream = farm.context.wrap_socket(stream, server_side=True)
        asked = b""
        while b"\r\n\r\n" not in asked:
            data = stream.recv(4096)
            if not data:
                return
            asked += data
        how = farm.how.get(address, "well")
        status = 500 if how == "unready" else 200
        word = "no" if how in {"wrong", "unready"} else "ok"
        body = f"{word} {address}:{port}{header}\n".encode()
        head = f"HTTP/1.1 {status} -\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
        stream.sendall(head if asked.startswith(b"HEAD ") else head + body)

    def _proxy_header(self) -> str:
        """Take a PROXY header from the connection, and name its version."""
        start = self.request.recv(len(_V2), socket.MSG_PEEK)
        if start.startswith(b"PROXY"):
            while self.request.recv(1) != b"\n":
                pass
            return " v1"
        if start == _V2:
            fixed = self.request.recv(16, socket.MSG_WAITALL)
            self.request.recv(int.from_bytes(fixed[14:16], "big"), socket.MSG_WAITALL)
            return " v2"
        return ""


def _main(arguments: argparse.Namespace) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(arguments.chain, arguments.key)
    farm = _Farm(context)
    endpoints = [
        (address, int(port)) for address, _, port in (each.partition(" ") for each in arguments.named)
    ]
    for each in endpoints:
        farm.open(each)
    say({})
    for line in sys.stdin:
        order = json.loads(line)
        if order["command"] == "behave":
            farm.behave(order["how"], order["addresses"], endpoints)
        say({"counts": dict(farm.counts)})


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--chain", required=True)
    parser.add_argument("--key", required=True)
    parser.add_argument("named", nargs="*")
    _main(parser.parse_args())
