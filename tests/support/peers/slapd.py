"""A real OpenLDAP in a directory of its own, as a server that a check talks to."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from support.network.ports import free_port
from support.peers.serving import serving


@contextlib.contextmanager
def slapd(*directives: str) -> Iterator[int]:
    """Run a slapd without a database, with these lines in its slapd.conf."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="lb-slapd-") as directory:
        config = Path(directory) / "slapd.conf"
        config.write_text("".join(f"{each}\n" for each in directives))
        # Without `-d` it would go into the background.
        command = ["slapd", "-d", "0", "-f", str(config), "-h", f"ldap://127.0.0.1:{port}"]
        with serving(command, port, directory):
            yield port
