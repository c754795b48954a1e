"""Keeps the screen of a virtual machine up to date: the text that agetty shows above its login prompt.

Every two seconds it reads files and boards, which is cheap. Only if something there has changed, or after 20
seconds, it asks the programs and writes the screen again.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import textwrap
import time
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

import appliance
from appliance.console.status.status import current_status
from appliance.core.status.problems import wrong_properties
from appliance.core.status.status import Status
from appliance.guest.host_keys import SSH, HostKey, host_keys
from appliance.model.guest.report import GuestReport
from appliance.model.messages.quoting import masked
from appliance.model.paths import Paths
from appliance.net.boards.board_content import content
from appliance.net.boards.board_layout import BoardError
from appliance.net.boards.board_reader import BoardReader
from appliance.net.netlink.links import Links
from appliance.wire.boards import vrrp_board

_LOOPBACK: Final = "lo"


class UnitState(StrEnum):
    """State of the appliance's unit."""

    STARTING = "starting"
    RUNNING = "running, with problems"
    STOPPED = "not running"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenFacts:
    """The data of the screen.

    `configured`: the operator's file exists. `addresses` are those of each interface but `lo`, with their
    prefix lengths. Operators compare `host_keys` with those that ssh shows at the first login. systemd is
    asked for `unit` where supervisord does not answer and should; otherwise it is RUNNING.
    """

    host: str
    config: Path
    configured: bool
    addresses: tuple[tuple[str, tuple[str, ...]], ...]
    host_keys: tuple[HostKey, ...]
    status: Status
    unit: UnitState


def current_facts(paths: Paths, links: Links | None = None) -> ScreenFacts:
    """Return the facts; `links` None reads the interfaces once."""
    if links is None:
        with Links() as own:
            return current_facts(paths, own)
    status = current_status(paths)
    configured = any(each.exists() for each in paths.operators_files)
    return ScreenFacts(
        host=socket.gethostname(),
        config=paths.config,
        configured=configured,
        addresses=interface_addresses(links),
        host_keys=host_keys(SSH),
        status=status,
        unit=unit_state() if configured and status.supervisor is not None else UnitState.RUNNING,
    )


_UNIT: Final = ("systemctl", "show", "appliance.service", "--property=ActiveState,Job,NRestarts")
_SYSTEMD_SECONDS: Final = 10.0


def unit_state() -> UnitState:
    """Ask systemd about `appliance.service`. A start that it repeats has failed before: that is STOPPED."""
    try:
        asked = subprocess.run(  # noqa: S603  # no shell
            _UNIT, capture_output=True, text=True, errors="replace", timeout=_SYSTEMD_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return UnitState.STOPPED
    shown = dict(line.split("=", 1) for line in asked.stdout.splitlines() if "=" in line)
    match shown.get("ActiveState"):
        case "active" | "reloading":
            return UnitState.RUNNING
        # The job exists from the boot until the unit is ready, also while it waits for other units.
        case "inactive" | "activating" if (
            shown.get("Job", "") not in ("", "0") and shown.get("NRestarts") == "0"
        ):
            return UnitState.STARTING
    return UnitState.STOPPED


def interface_addresses(links: Links) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the addresses of each interface but `lo`, sorted by its name."""
    with contextlib.suppress(OSError):  # the kernel did not answer: the addresses known before are shown
        links.read()
    names = sorted(name for _, name in socket.if_nameindex() if name != _LOOPBACK)
    found = ((name, link.addresses) for name in names if (link := links.state(name)))
    return tuple((name, addresses) for name, addresses in found if addresses)


_WIDTH: Final = 78


def hint(message: str) -> list[str]:
    """Return the message as lines of at most 78 characters, the first one with `!`."""
    return textwrap.wrap(message, _WIDTH, initial_indent="  ! ", subsequent_indent="    ")


def log_in(facts: ScreenFacts) -> Iterator[str]:
    """Yield the lines; without a key no one can log in, and they explain how to add one.

    The ssh command names an address that stays on this machine, of the interface for management if there is
    one: no virtual IP, and no link-local one.
    """
    report = facts.status.guest
    if report is not None and not report.login_keys:
        yield from hint(
            "no one can log in without a key: shut the machine down, fill in SSH public key (ssh_key) in "
            "its vApp options, power it on"
        )
        return
    management = report.management if report is not None else None
    own = (
        address for name, addresses in facts.addresses if management in (None, name) for address in addresses
    )
    held = {address for each in facts.status.virtual_ips for address in each.addresses}
    usual = [each.partition("/")[0] for each in own if each not in held and not each.startswith("fe80:")]
    yield f"Log in:    ssh admin@{usual[0] if usual else facts.host}"
    for position, each in enumerate(facts.host_keys):
        title = "" if position else "Host keys:"
        yield f"{title:10} {each.fingerprint} ({each.kind})"


_MOST_PROBLEMS: Final = 8


def screen_text(facts: ScreenFacts) -> str:
    """Return the whole screen in agetty's format."""
    return "".join(f"{_plain(line)}\n" for line in ("", *_lines(facts), ""))


def _lines(facts: ScreenFacts) -> Iterator[str]:
    yield f"Load-balancer appliance {appliance.__version__} on {facts.host}"
    yield ""
    yield from _address_lines(facts)
    yield f"State:     {_state(facts)}"
    yield from log_in(facts)
    if facts.status.degraded is not None:
        yield from hint(
            f"{facts.config} has errors: `sudo appliance check` lists them; once it is right "
            "`sudo appliance reload` takes it"
        )
    report = facts.status.guest
    starting = facts.unit is UnitState.STARTING
    of_properties = tuple(wrong_properties(report)) if report else ()
    problems = facts.status.problems if facts.configured and not starting else of_properties
    for problem in problems[:_MOST_PROBLEMS]:
        yield from hint(problem)
    if len(problems) > _MOST_PROBLEMS:
        yield from hint(f"and {len(problems) - _MOST_PROBLEMS} more: `sudo appliance status`")
    yield from _what_to_do(facts, report)


def _address_lines(facts: ScreenFacts) -> Iterator[str]:
    virtual = {
        address: each.name for each in facts.status.virtual_ips if each.active for address in each.addresses
    }
    title = "Addresses:"
    for interface, addresses in facts.addresses:
        for address in addresses:
            name = virtual.get(address)
            yield f"{title:10} {address} ({interface}{f', virtual IP {name}' if name else ''})"
            title = ""
    if title:
        yield f"{title:10} none yet"


def _state(facts: ScreenFacts) -> str:
    status = facts.status
    if not facts.configured and status.configuration is None:
        return "not configured"
    if status.supervisor is not None:
        return facts.unit
    if status.degraded is not None:
        return "serving the last good configuration"
    return "serving" if status.ok else UnitState.RUNNING


def _what_to_do(facts: ScreenFacts, report: GuestReport | None) -> Iterator[str]:
    wrong = report is not None and any(each.key for each in report.problems)
    if wrong:
        yield from hint("to change properties: shut down, edit the vApp options of the machine, power on")
    elif not facts.configured:
        yield from hint(
            "to configure: shut down, fill in the vApp options of the machine, power on; or log in, write "
            f"{facts.config}, and `sudo systemctl restart appliance`"
        )
    elif facts.status.supervisor is not None and facts.unit is UnitState.STOPPED:
        yield from hint("why it does not run: `sudo journalctl -u appliance`")


def _plain(line: str) -> str:
    """Return a line without control sequences of agetty or a terminal."""
    return masked(line, "?").replace("\\", "\\\\")


Signature = tuple[object, ...]


def signature(paths: Paths, links: Links) -> Signature:
    """Return the current signature; costs a few system calls and asks no program."""
    files = (paths.config, paths.accepted, paths.guest_report, paths.supervisor_socket, paths.runtime, SSH)
    return (socket.gethostname(), interface_addresses(links), _states(paths), *map(_stamp, files))


def _states(paths: Paths) -> tuple[object, ...]:
    """Return the state of each virtual router, and the number of changes of the health board."""
    found: list[object] = []
    if vrrp := content(paths.vrrp_board, vrrp_board.decode):
        found += [(each.name, each.state) for each in vrrp.routers]
    with contextlib.suppress(BoardError), BoardReader(paths.health_board) as reader:
        found.append(reader.changes)
    return tuple(found)


def _stamp(path: Path) -> tuple[int, int]:
    try:
        found = os.stat(path)  # noqa: PTH116
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_ino


_AGETTY_SECONDS: Final = 10.0


def write_issue(screen: str, issue: Path) -> None:
    """Write the screen to the file and notify agetty, unless the file has this text already.

    Every `agetty --reload` redraws the console, even while an operator types.
    """
    issue = issue.resolve()  # a rename would replace a symbolic link instead of its target
    with contextlib.suppress(OSError):
        if issue.read_text(encoding="utf-8") == screen:
            return
    issue.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    scratch = issue.with_name(f".{issue.name}.new")  # agetty reads *.issue only
    scratch.write_text(screen, encoding="utf-8")
    scratch.chmod(0o644)
    scratch.replace(issue)
    agetty = shutil.which("agetty")
    if agetty is not None:
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run([agetty, "--reload"], timeout=_AGETTY_SECONDS, check=False)  # noqa: S603  # no shell


_WAKE_SECONDS: Final = 2.0
_ASK_SECONDS: Final = 20.0
_ASK_SOON_SECONDS: Final = 4.0


def current_screen(paths: Paths, links: Links | None = None) -> str:
    """Return the current screen; `links` are the interfaces of a caller that asks repeatedly."""
    return screen_text(current_facts(paths, links))


def keep(paths: Paths, issue: Path) -> None:
    """Keep the file `issue` up to date; never returns."""
    before: Signature = ()
    ask_at = 0.0
    with Links() as links:
        while True:
            now, found = time.monotonic(), signature(paths, links)
            if found != before or now >= ask_at:
                # A change is often followed by others that no file shows, so the programs are asked again
                # soon.
                ask_at = now + (_ASK_SECONDS if found == before else _ASK_SOON_SECONDS)
                before = found
                write_issue(current_screen(paths, links), issue)
            time.sleep(_WAKE_SECONDS)
