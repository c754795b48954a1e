"""A TCP server that says its name, and then repeats it for each byte it gets: `python greeter.py NAME PORT`.

It listens on every address, as an API server does.
"""

import contextlib
import socket
import sys
import threading


def main() -> None:
    """Serve until killed."""
    name, port = sys.argv[1].encode() + b"\n", int(sys.argv[2])
    listener = socket.create_server(
        ("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=4096, reuse_port=False
    )
    sys.stdout.write("listening\n")
    sys.stdout.flush()
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=_serve, args=(connection, name), daemon=True).start()


def _serve(connection: socket.socket, name: bytes) -> None:
    with connection, contextlib.suppress(OSError):
        connection.sendall(name)
        while connection.recv(1):
            connection.sendall(name)


if __name__ == "__main__":
    main()
