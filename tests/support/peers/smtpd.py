"""A real OpenSMTPD in file systems of its own, as a server that a check talks to."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from support.network.ports import free_port
from support.peers.serving import serving
from support.run import tools

STRANGER: Final = "stranger.example.com"

# The paths of its spool and of its control socket are compiled in; its other users have to pass the former.
_IN_OWN_MOUNTS: Final = """
mount -t tmpfs -o mode=711 tmpfs /var/spool && mkdir -m 711 /var/spool/smtpd &&
mount -t tmpfs -o mode=755 tmpfs /var/run && exec "$@"
"""


@contextlib.contextmanager
def smtpd() -> Iterator[int]:
    """Run a smtpd that greets everybody but `STRANGER`, and takes no mail; only root can."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="lb-smtpd-") as directory:
        config = Path(directory) / "smtpd.conf"
        config.write_text(_config(port))
        server = [tools.path("smtpd") or "smtpd", "-d", "-f", str(config)]
        with serving(["unshare", "--mount", "sh", "-c", _IN_OWN_MOUNTS, "sh", *server], port, directory):
            yield port


def _config(port: int) -> str:
    return f"""
filter no-helo phase helo match helo {{ "{STRANGER}" }} reject "550 no strangers"
filter no-ehlo phase ehlo match helo {{ "{STRANGER}" }} reject "550 no strangers"
filter no-stranger chain {{ no-helo, no-ehlo }}
listen on 127.0.0.1 port {port} hostname mail.example.com filter no-stranger
match from any for any reject
"""
