"""A real rsyslogd that takes messages by UDP, TCP, TLS and a socket, and writes what it understood."""

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.network.ports import free_port
from support.processes.waiting import wait_until
from support.values.certificates import Certificates

from appliance.net.listening.bind_refusals import PortOwners

_CONFIG = """
global(workDirectory="{root}" maxMessageSize="8k")
module(load="imudp")
module(load="imtcp")
module(load="imuxsock" SysSock.Use="off")
input(type="imudp" address="127.0.0.1" port="{port}")
input(type="imtcp" address="127.0.0.1" port="{port}")
input(type="imuxsock" Socket="{root}/log" UseSpecialParser="off" ParseHostname="on" IgnoreTimestamp="off")
{more}
template(name="parsed" type="list" option.jsonf="on") {{
    property(outname="version" name="protocol-version" format="jsonf")
    property(outname="severity" name="syslogseverity-text" format="jsonf")
    property(outname="facility" name="syslogfacility-text" format="jsonf")
    property(outname="host" name="hostname" format="jsonf")
    property(outname="program" name="app-name" format="jsonf")
    property(outname="kind" name="msgid" format="jsonf")
    property(outname="data" name="structured-data" format="jsonf")
    property(outname="text" name="msg" format="jsonf")
}}
action(type="omfile" file="{root}/out" template="parsed" asyncWriting="off" flushOnTXEnd="on")
"""

_TLS = """
input(type="imtcp" address="127.0.0.1" port="{port}" streamDriver.name="ossl" streamDriver.mode="1"
      streamDriver.authMode="anon" streamDriver.CAFile="{certificates.authority}"
      streamDriver.certFile="{certificates.chain}" streamDriver.keyFile="{certificates.key}")
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rsyslog:
    """A running rsyslogd: `port` is for UDP and TCP, `tls_port` for TLS, `socket` takes datagrams."""

    port: int
    tls_port: int
    socket: Path
    out: Path

    def messages(self) -> list[dict[str, str]]:
        """Return what it has understood so far."""
        # The first is of `rsyslog`; a part after the last newline is a message that it is writing.
        return [json.loads(line) for line in self.out.read_text().split("\n")[1:-1]]

    def wait_for(self, text: str) -> dict[str, str]:
        """Return the first message whose text holds this."""
        return wait_until(
            lambda: next((each for each in self.messages() if text in each["text"]), None),
            what=f"rsyslogd has {text!r}",
        )


def _listens(*ports: int) -> bool:
    owners = PortOwners()
    return all(map(owners.owner, ports))


def _open(out: Path, local: Path) -> None:
    """Have it write a first message."""
    # rsyslogd 8.2302 may close the descriptor of a TLS connection twice. If it opened the file of messages in
    # between, it closes that, and messages are lost: so the file is opened before there is a connection.
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagrams:
        datagrams.sendto(b"<14>1 - - - - - - the file of messages is open", str(local))
    wait_until(lambda: out.exists() and out.read_text().endswith("\n"), what="rsyslogd writes messages")


@contextmanager
def rsyslog(root: Path, *, certificates: Certificates | None = None) -> Iterator[Rsyslog]:
    """Run one in a directory with a short path; it takes TLS where it has certificates."""
    port, tls_port = free_port(), free_port()
    more = _TLS.format(port=tls_port, certificates=certificates) if certificates else ""
    config = root / "rsyslog.conf"
    config.write_text(_CONFIG.format(root=root, port=port, more=more))
    process = subprocess.Popen(
        ["/usr/sbin/rsyslogd", "-n", "-f", config, "-i", root / "pid"], env=dict(os.environ)
    )
    try:
        wait_until(
            lambda: _listens(port, tls_port if certificates else port) and (root / "log").exists(),
            what="rsyslogd listens",
        )
        _open(root / "out", root / "log")
        yield Rsyslog(port=port, tls_port=tls_port, socket=root / "log", out=root / "out")
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(15)
