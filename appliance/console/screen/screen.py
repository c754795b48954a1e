"""The screen of a virtual machine: what agetty shows above its login prompt, kept as things are.

Every two seconds a look at files and boards says whether something may have changed; programs are asked
only then, or after a while.
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
from pathlib import Path
from typing import Final

import appliance
from appliance.console.status.status import current_status
from appliance.core.status.status import Status
from appliance.model.guest.report import GuestReport
from appliance.model.messages.quoting import masked
from appliance.model.paths import Paths
from appliance.net.boards.boards import BoardError, BoardReader
from appliance.net.guest.host_keys import SSH, HostKey, host_keys
from appliance.net.netlink.links import Links
from appliance.wire.boards import vrrp_board
from appliance.wire.boards.health_board import BoardFormatError

_WAKE: Final = 2.0
_ASK: Final = 20.0
_SOON: Final = 4.0
_WIDTH: Final = 78
_MOST_PROBLEMS: Final = 8
_PATIENCE: Final = 10.0
_LOOPBACK: Final = "lo"

Signature = tuple[object, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenFacts:
    """What the screen is made of: addresses by interface, and whether there is a configuration at all.

    Host keys are for who logs in for the first time.
    """

    host: str
    config: Path
    configured: bool
    addresses: tuple[tuple[str, tuple[str, ...]], ...]
    host_keys: tuple[HostKey, ...]
    status: Status


def keep(paths: Paths, issue: Path) -> None:
    """Keep the screen until this process is ended."""
    seen: Signature = ()
    ask_at = 0.0
    with Links() as links:
        while True:
            now, found = time.monotonic(), _signature(paths, links)
            if found != seen or now >= ask_at:
                # What changes is rarely done changing: the next look is soon.
                ask_at = now + (_ASK if found == seen else _SOON)
                seen = found
                show(text(look(paths, links)), issue)
            time.sleep(_WAKE)


def look(paths: Paths, links: Links | None = None) -> ScreenFacts:
    """Return how things are now."""
    if links is None:
        with Links() as own:
            return look(paths, own)
    return ScreenFacts(
        host=socket.gethostname(),
        config=paths.config,
        configured=paths.config.exists(),
        addresses=_addresses(links),
        host_keys=host_keys(SSH),
        status=current_status(paths),
    )


def text(view: ScreenFacts) -> str:
    """Return the screen, in the form that agetty reads."""
    return "".join(f"{_plain(line)}\n" for line in ("", *_lines(view), ""))


def show(screen: str, issue: Path) -> None:
    """Write the file and have agetty read it, if it says something else."""
    issue = issue.resolve()  # what takes the place of a file must not take that of a link to it
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
            subprocess.run([agetty, "--reload"], timeout=_PATIENCE, check=False)  # noqa: S603  # no shell


def _lines(view: ScreenFacts) -> Iterator[str]:
    yield f"Load-balancer appliance {appliance.__version__} on {view.host}"
    yield ""
    yield from _address_lines(view)
    yield f"State:     {_state(view)}"
    yield from _log_in(view)
    if view.status.degraded is not None:
        yield from _item(
            f"{view.config} has errors: `sudo appliance check` lists them; once it is right "
            "`sudo appliance reload` takes it"
        )
    report = view.status.guest
    problems = view.status.problems if view.configured else _of_properties(report)
    for problem in problems[:_MOST_PROBLEMS]:
        yield from _item(problem)
    if len(problems) > _MOST_PROBLEMS:
        yield from _item(f"and {len(problems) - _MOST_PROBLEMS} more: `sudo appliance status`")
    yield from _what_to_do(view, report)


def _address_lines(view: ScreenFacts) -> Iterator[str]:
    virtual = {
        address: each.name for each in view.status.virtual_ips if each.active for address in each.addresses
    }
    title = "Addresses:"
    for interface, addresses in view.addresses:
        for address in addresses:
            name = virtual.get(address)
            yield f"{title:10} {address} ({interface}{f', virtual IP {name}' if name else ''})"
            title = ""
    if title:
        yield f"{title:10} none yet"


def _state(view: ScreenFacts) -> str:
    status = view.status
    if not view.configured and status.configuration is None:
        return "not configured"
    if status.supervisor is not None:
        return "not running"
    if status.degraded is not None:
        return "serving the last good configuration"
    return "serving" if status.ok else "running, with problems"


def _log_in(view: ScreenFacts) -> Iterator[str]:
    report = view.status.guest
    if report is not None and not report.login_keys:
        yield from _item(
            "nobody can log in, without a key: shut the machine down, fill in SSH public key (ssh_key) in "
            "its vApp options, power it on"
        )
        return
    own = (address for _, addresses in view.addresses for address in addresses)
    held = {address for each in view.status.virtual_ips for address in each.addresses}
    usual = [each.partition("/")[0] for each in own if each not in held and not each.startswith("fe80:")]
    yield f"Log in:    ssh admin@{usual[0] if usual else view.host}"
    for position, each in enumerate(view.host_keys):
        title = "" if position else "Host keys:"
        yield f"{title:10} {each.fingerprint} ({each.kind})"


def _of_properties(report: GuestReport | None) -> tuple[str, ...]:
    return tuple(f"property {each}" if each.key else str(each) for each in report.problems) if report else ()


def _what_to_do(view: ScreenFacts, report: GuestReport | None) -> Iterator[str]:
    wrong = report is not None and any(each.key for each in report.problems)
    if wrong:
        yield from _item("to change properties: shut down, edit the vApp options of the machine, power on")
    elif not view.configured:
        yield from _item(
            "to configure: shut down, fill in the vApp options of the machine, power on; or log in, write "
            f"{view.config}, and `sudo systemctl restart appliance`"
        )
    elif view.status.supervisor is not None:
        yield from _item("why it does not run: `sudo journalctl -u appliance`")


def _item(message: str) -> list[str]:
    return textwrap.wrap(message, _WIDTH, initial_indent="  ! ", subsequent_indent="    ")


def _plain(line: str) -> str:
    """Return a line in which agetty finds no orders, and a terminal neither."""
    return masked(line, "?").replace("\\", "\\\\")


def _addresses(links: Links) -> tuple[tuple[str, tuple[str, ...]], ...]:
    with contextlib.suppress(OSError):  # the kernel was too busy to answer: what was known is shown
        links.read()
    names = sorted(name for _, name in socket.if_nameindex() if name != _LOOPBACK)
    found = ((name, link.addresses) for name in names if (link := links.state(name)))
    return tuple((name, addresses) for name, addresses in found if addresses)


def _signature(paths: Paths, links: Links) -> Signature:
    """Return what changes where the screen might; costs a few system calls."""
    files = (paths.config, paths.accepted, paths.guest_report, paths.supervisor_socket, paths.runtime, SSH)
    return (socket.gethostname(), _addresses(links), _states(paths), *map(_stamp, files))


def _states(paths: Paths) -> tuple[object, ...]:
    """Return the state of each virtual router, and how often a verdict on a server has changed."""
    found: list[object] = []
    with contextlib.suppress(BoardError, BoardFormatError), BoardReader(paths.vrrp_board) as reader:
        found += [(each.name, each.state) for each in vrrp_board.decode(reader.read()).routers]
    with contextlib.suppress(BoardError), BoardReader(paths.health_board) as reader:
        found.append(reader.changes)
    return tuple(found)


def _stamp(path: Path) -> tuple[int, int]:
    try:
        found = os.stat(path)  # noqa: PTH116
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_ino
