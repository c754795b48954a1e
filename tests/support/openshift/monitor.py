"""A stand-in for OpenShift's `monitor` (baremetal-runtimecfg), which is a Go program: the same, step by step.

It connects to the reload socket once and never reads from it; lists the masters; believes a change that it
has seen three times in a row; renders the template in place; compares the file with what it was, by MD5;
writes `reload`; asks the appliance for its health, and has nftables redirect the API's port accordingly. It
ends with an error where it cannot connect, render or write, as the kubelet starts it again.

Not as there: times are shorter by `--scale`; the API is plain HTTP with nodes that are this short:
`{"items": [{"name": "master-0", "address": "192.0.2.1"}]}`; addresses are not looked for in annotations.
Its log has one line of JSON for each thing that it did.
"""

import argparse
import hashlib
import json
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from support.openshift.go_template import GoTemplateError, render

THRESHOLD: Final = 3
"""Times in a row that a changed configuration is seen before it is believed."""

_GOOD: Final = 3
_BAD: Final = 11
_CLIENT_TIMEOUT: Final = 30.0
_COMMENT: Final = "OCP_API_LB_REDIRECT"
_TABLE: Final = "ocp_nat"

Config = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the command line says; `interval` and `timeout` are scaled."""

    servers: tuple[str, ...]
    template: Path
    output: Path
    socket: Path
    vips: tuple[str, ...]
    api_port: int
    lb_port: int
    stat_port: int
    interval: float
    timeout: float


class Stabilization:
    """Healthy after three good answers in a row, unhealthy after eleven bad ones; one counter for both."""

    def __init__(self) -> None:
        self.healthy = False
        self._contrary = 0

    def judge(self, *, good: bool) -> bool:
        """Count one answer, and return what is believed."""
        self._contrary = self._contrary + 1 if good is not self.healthy else 0
        if self._contrary >= (_BAD if self.healthy else _GOOD):
            self.healthy, self._contrary = good, 0
        return self.healthy


class Monitor:
    """The state of one run: what was applied, and how often the change that is due was seen."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(str(settings.socket))
        self._applied: Config | None = None
        self._seen: Config | None = None
        self._count = 0
        self._health = Stabilization()
        self.loops = 0

    def loop(self) -> float:
        """Look once; return how long to sleep. Raises OSError and GoTemplateError, which end the program."""
        self.loops += 1
        try:
            found = self._config()
        except (OSError, ValueError) as error:
            _say("config-failed", reason=str(error))
            return self._settings.interval / 2
        if found == self._applied:
            self._count = 0
        else:
            self._count = self._count + 1 if found == self._seen else 1
            if self._count >= THRESHOLD:
                self._apply(found)
        self._seen = found
        healthy = self._health.judge(good=self._is_healthy())
        for vip in self._settings.vips:
            try:
                _ensure(vip, self._settings) if healthy else _clean(vip)
            except subprocess.CalledProcessError as error:
                _say("rules-failed", reason=error.stderr)
        return self._settings.interval

    def _apply(self, config: Config) -> None:
        before = _md5(self._settings.output)
        text = render(self._settings.template.read_text(), {"LBConfig": config})
        self._settings.output.write_text(text)  # in place: whoever looks now sees half of it
        self._settings.output.chmod(self._settings.template.stat().st_mode)
        self._applied, self._count = config, 0
        if _md5(self._settings.output) == before:
            _say("unchanged", loops=self.loops)
            return
        self._connection.sendall(b"reload\n")
        _say("reload", loops=self.loops)

    def _config(self) -> Config:
        """Return what the template is rendered with, by the first server that answers."""
        settings, failure = self._settings, OSError("no server")
        for server in settings.servers:
            try:
                with urllib.request.urlopen(server, timeout=settings.timeout) as answer:  # noqa: S310  # ours
                    nodes = json.load(answer)["items"]
                break
            except OSError as error:
                failure = error
        else:
            raise failure
        backends = [
            {"Host": each["name"], "Address": each["address"], "Port": settings.api_port} for each in nodes
        ]
        return {
            "ApiPort": settings.api_port,
            "LbPort": settings.lb_port,
            "StatPort": settings.stat_port,
            "Backends": sorted(backends, key=lambda each: str(each["Address"])),
            "FrontendAddr": "::" if ":" in settings.vips[0] else "",
        }

    def _is_healthy(self) -> bool:
        try:
            with urllib.request.urlopen(
                "http://localhost:9454/haproxy_monitor", timeout=self._settings.timeout
            ) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


def _md5(path: Path) -> str:
    try:
        return hashlib.md5(path.read_bytes()).hexdigest()  # noqa: S324  # as the original does; it guards nothing
    except FileNotFoundError:
        return ""


def _family(vip: str) -> str:
    return "ip6" if ":" in vip else "ip"


def _ensure(vip: str, settings: Settings) -> None:
    """Insert the rules, where there is none with the comment."""
    family, destination = _family(vip), f"[{vip}]" if ":" in vip else vip
    _nft(
        f"add table {family} {_TABLE}",
        f"add chain {family} {_TABLE} ocp_prerouting {{ type nat hook prerouting priority -100 ; }}",
        f"add chain {family} {_TABLE} ocp_output {{ type nat hook output priority -100 ; }}",
    )
    match = f"{family} daddr {vip} meta l4proto tcp tcp dport {settings.api_port}"
    rules = {
        "ocp_prerouting": f"{match} dnat to {destination}:{settings.lb_port}",
        "ocp_output": f'{match} oifname "lo" redirect to :{settings.lb_port}',
    }
    for chain, rule in rules.items():
        if not _handles(family, chain):
            _nft(f'insert rule {family} {_TABLE} {chain} {rule} comment "{_COMMENT}"')
            _say("rule-added", chain=chain, vip=vip)


def _clean(vip: str) -> None:
    family = _family(vip)
    for chain in ("ocp_prerouting", "ocp_output"):
        for handle in _handles(family, chain):
            _nft(f"delete rule {family} {_TABLE} {chain} handle {handle}")
            _say("rule-removed", chain=chain, vip=vip)


def has_rules(family: str = "ip") -> bool:
    """Return whether both rules are there, found by their comment as dynkeepalived does."""
    return all(_handles(family, chain) for chain in ("ocp_prerouting", "ocp_output"))


def _handles(family: str, chain: str) -> list[int]:
    listed = subprocess.run(
        ["nft", "--json", "list", "chain", family, _TABLE, chain], capture_output=True, check=False
    )
    if listed.returncode:
        return []
    rules: list[Mapping[str, Mapping[str, object]]] = json.loads(listed.stdout)["nftables"]
    found = (each["rule"] for each in rules if "rule" in each)
    return [int(str(each["handle"])) for each in found if each.get("comment") == _COMMENT]


def _nft(*commands: str) -> None:
    subprocess.run(
        ["nft", "--file", "-"], input="\n".join(commands), text=True, capture_output=True, check=True
    )


def _say(event: str, **values: object) -> None:
    print(json.dumps({"event": event, **values}), flush=True)  # noqa: T201  # its log


def _settings(arguments: Sequence[str]) -> Settings:
    parser = argparse.ArgumentParser()
    parser.add_argument("template", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--server", action="append", required=True)
    parser.add_argument("--socket", type=Path, default=Path("/var/run/haproxy/haproxy-master.sock"))
    parser.add_argument("--api-vips", required=True)
    parser.add_argument("--api-port", type=int, default=6443)
    parser.add_argument("--lb-port", type=int, default=9445)
    parser.add_argument("--stat-port", type=int, default=29445)
    parser.add_argument("--check-interval", type=float, default=6.0)
    parser.add_argument("--scale", type=float, default=1.0)
    given = parser.parse_args(arguments)
    return Settings(
        servers=tuple(given.server),
        template=given.template,
        output=given.output,
        socket=given.socket,
        vips=tuple(given.api_vips.split(",")),
        api_port=given.api_port,
        lb_port=given.lb_port,
        stat_port=given.stat_port,
        interval=given.check_interval / given.scale,
        timeout=max(_CLIENT_TIMEOUT / given.scale, 1.0),
    )


def main() -> int:
    """Run until TERM or INT, which removes the rules, or to an error, which does not."""
    settings = _settings(sys.argv[1:])
    ended: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: ended.append(number))
    try:
        monitor = Monitor(settings)
        _say("connected")
        while not ended:
            time.sleep(monitor.loop())
    except (OSError, GoTemplateError) as error:
        _say("ended", reason=str(error), kind=type(error).__name__)
        return 1
    for vip in settings.vips:
        _clean(vip)
    _say("stopped", loops=monitor.loops)
    return 0


if __name__ == "__main__":
    sys.exit(main())
