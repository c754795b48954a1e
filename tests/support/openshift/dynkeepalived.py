"""A stand-in for OpenShift's `dynkeepalived` (baremetal-runtimecfg), a Go program: the same, step by step.

It connects to the socket once and never reads from it. Each loop first writes or removes the marker file, by
whether both redirect rules are there. The mode is that of the file that is there, told by the word
`unicast_peer`; without a file it is ENABLE_UNICAST. It believes a configuration that it has seen three times
in a row, renders no unicast with fewer than two masters outside the bootstrap node, and writes `reload`. A
mode in `monitor.conf` is applied by all nodes at the same boundary of the clock: rendered before it, `reload`
at it. On the bootstrap node five failures of the local API in a row send `stop`, again and again; the first
answer after that sends `reload`.

Not as there: times are shorter by `--scale`, also those of the clock; the API is that of
support.openshift.node_api; whether an upgrade is running is not asked; nobody asks Ironic.
"""

import argparse
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from support.openshift.go_template import GoTemplateError
from support.openshift.monitor import THRESHOLD, has_rules
from support.openshift.pod_templates import KeepalivedNode

_WORD: Final = "unicast_peer"
_BOUNDARY: Final = 300.0  # seconds of the clock at whose multiples a mode is applied
_BEFORE: Final = 30.0  # seconds before it, in which the file is rendered
_FAILURES: Final = 4
_PROBE: Final = 1.0
_PAUSE_AFTER_STOP: Final = 5.0


class Dynkeepalived:
    """The state of one run."""

    def __init__(self, given: argparse.Namespace) -> None:
        self._given = given
        self._scale = float(given.scale)
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(given.socket)
        self._applied: KeepalivedNode | None = None
        self._seen: KeepalivedNode | None = None
        self._count = 0
        self._failures = 0
        self._next_probe = 0.0
        self._next_loop = 0.0

    def turn(self) -> float:
        """Do what is due, and return how long to sleep; raises OSError and GoTemplateError, which end it."""
        now = time.monotonic()
        if self._given.bootstrap and now >= self._next_probe:
            self._next_probe = now + _PROBE / self._scale
            self._next_probe += self._watch_api()
        if now >= self._next_loop:
            self._next_loop = now + self._given.check_interval / self._scale
            self._loop()
        if (at := self._due_mode()) is not None:
            self._flip(at)
        soonest = min(self._next_loop, self._next_probe) if self._given.bootstrap else self._next_loop
        return max(0.0, min(soonest - time.monotonic(), _PROBE / self._scale))

    def _loop(self) -> None:
        self._mark()
        found = self._config(unicast=self._mode())
        if found == self._applied or (found.unicast and len(found.masters) < 2 and not self._given.bootstrap):
            self._count = 0
        else:
            self._count = self._count + 1 if found == self._seen else 1
            if self._count >= THRESHOLD:
                self._render(found)
                self._say("reload")
        self._seen = found

    def _mark(self) -> None:
        marker = Path(self._given.marker)
        if not has_rules():
            marker.unlink(missing_ok=True)
        elif not marker.exists():
            marker.touch()
            _log("marked")

    def _mode(self) -> bool:
        """Return whether the file that is there is a unicast one."""
        try:
            return _WORD in self._given.output.read_text()
        except FileNotFoundError:
            return os.environ.get("ENABLE_UNICAST", "yes") == "yes"

    def _config(self, *, unicast: bool) -> KeepalivedNode:
        with urllib.request.urlopen(self._given.server, timeout=5) as answer:  # noqa: S310  # the test's own
            nodes = sorted(str(each["address"]) for each in json.load(answer)["items"] if each["address"])
        api, ingress = self._given.vips.split(",")
        own: str = self._given.own
        here = KeepalivedNode(own=own, masters=tuple(nodes), nodes=tuple(nodes), vips=((api, ingress),))
        return replace(here, unicast=unicast)

    def _render(self, config: KeepalivedNode) -> None:
        self._given.output.write_text(config.render(self._given.template))
        self._applied, self._count = config, 0

    def _say(self, word: str) -> None:
        self._connection.sendall(f"{word}\n".encode())
        _log(word)

    # monitor.conf

    def _wanted_mode(self) -> bool | None:
        """Return the mode of monitor.conf, None where there is none or it is the present one."""
        try:
            wanted = "mode: unicast" in Path(self._given.monitor_conf).read_text()
        except FileNotFoundError:
            return None
        return None if wanted is self._mode() else wanted

    def _due_mode(self) -> float | None:
        """Return the boundary of the clock that is near, where a mode is to be applied there."""
        period = _BOUNDARY / self._scale
        boundary = (time.time() // period + 1) * period
        near = boundary - time.time() <= _BEFORE / self._scale
        return boundary if near and self._wanted_mode() is not None else None

    def _flip(self, boundary: float) -> None:
        wanted = self._wanted_mode()
        self._render(self._config(unicast=bool(wanted)))
        time.sleep(max(0.0, boundary - time.time()))
        self._say("reload")
        _log("mode", unicast=wanted)

    # The bootstrap node

    def _watch_api(self) -> float:
        """Ask the local API; return how much longer to wait with the next question."""
        if _answers("https://localhost:6443/readyz"):
            stopped, self._failures = self._failures > _FAILURES, 0
            if stopped:
                self._say("reload")
            return 0.0
        self._failures += 1
        if self._failures <= _FAILURES:
            return 0.0
        self._say("stop")
        return _PAUSE_AFTER_STOP / self._scale


def _answers(url: str) -> bool:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with urllib.request.urlopen(url, timeout=5, context=context) as answer:  # noqa: S310  # a fixed URL
            return bool(answer.status == 200)
    except OSError:
        return False


def _log(event: str, **values: object) -> None:
    print(json.dumps({"event": event, **values}), flush=True)  # noqa: T201  # its log


def _given(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("template", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--server", required=True)
    parser.add_argument("--own", required=True)
    parser.add_argument("--vips", required=True, help="of the API and of ingress")
    parser.add_argument("--socket", default="/var/run/keepalived/keepalived.sock")
    parser.add_argument("--marker", default="/var/run/keepalived/iptables-rule-exists")
    parser.add_argument("--monitor-conf", default="/etc/keepalived/monitor.conf")
    parser.add_argument("--check-interval", type=float, default=10.0)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--bootstrap", action="store_true")
    return parser.parse_args(arguments)


def main() -> int:
    """Run until TERM or INT, or to an error."""
    ended: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: ended.append(number))
    try:
        program = Dynkeepalived(_given(sys.argv[1:]))
        _log("connected")
        while not ended:
            time.sleep(program.turn())
    except (OSError, GoTemplateError, subprocess.CalledProcessError) as error:
        _log("ended", reason=str(error), kind=type(error).__name__)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
