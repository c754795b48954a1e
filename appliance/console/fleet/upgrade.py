"""`appliance fleet upgrade`: one node after another, each looked at before the next."""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import click

from appliance.console.fleet.asking import Fleet, Way, missing
from appliance.console.fleet.remote import RemoteCommand, closed_at_the_end, wait, why
from appliance.console.fleet.ssh_commands import FleetNode
from appliance.console.fleet.status import report
from appliance.console.output.printing import print_json
from appliance.console.output.refusal import Refused
from appliance.console.releases import Trust, verified
from appliance.console.upgrade import UNSIGNED
from appliance.core.fleet.fleet_status import NodeReport, new_problems, objection, turns
from appliance.model.messages.quoting import printable
from appliance.net.releases import archive
from appliance.net.releases.archive import ArchiveRefused

_UPGRADE: Final = 600.0
"""Seconds beyond those of other steps for an installation and a take-over."""

_LOOK_AGAIN: Final = 1.0
_SHOWN: Final = 3
_NAME: Final = re.compile(r"lb-appliance-(?P<version>[0-9][0-9A-Za-z.+]*)(-cp[0-9]+-[a-z0-9_]+)?\.tar\.gz")
_BESIDE: Final = "`appliance fleet status` shows the nodes; the others serve"


@dataclass(slots=True, kw_only=True)
class _Course:
    """What has been done so far; `trouble` is why it has stopped."""

    done: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    trouble: str | None = None


@click.command("upgrade", epilog="Example: appliance fleet upgrade lb-appliance-0.2.0.tar.gz")
@click.argument("file", required=False, type=click.Path(path_type=Path), metavar="ARCHIVE")
@click.option("--back", is_flag=True, help="Return to the release that ran before this one.")
@click.option("--unsigned", is_flag=True, help=UNSIGNED)
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
@click.pass_obj
def fleet_upgrade(way: Way, *, file: Path | None, back: bool, unsigned: bool, as_json: bool) -> None:
    """Upgrade all nodes to the release of ARCHIVE, one after another.

    ARCHIVE must be signed with a key that the releases of this command and of the nodes know; its signature
    is ARCHIVE.sig. Nodes without a virtual IP come first, and nodes that have the release already are left
    out. Each in its turn leaves its virtual IPs to others if `linger` keeps all connections (`appliance leave
    --if-kept`), is upgraded in place, which ends no connection, and takes part again. The next one follows
    when all nodes are as well as before. Otherwise the upgrade stops, and says which nodes are done. A node
    finishes its turn even if the connection to it is lost, or after Ctrl-C.

    With --back each node returns to its former release; if they run different releases, --node names those
    that are to. Requires root on the nodes. Containers are upgraded in another way.

    Exits 0 if all nodes have the release and are as well as before, else 1.

    JSON: ok, done (nodes), left (nodes whose turn has not come), trouble (why it has stopped, or null).
    """
    if bool(file) == back:
        raise click.UsageError("name an ARCHIVE, or --back")
    if unsigned and back:
        raise click.UsageError("--unsigned is of an ARCHIVE")
    if way.transport.via == "podman":
        raise click.UsageError("a container is replaced by one of another image: see image/README.md")
    fleet = way.fleet()
    trust = Trust.ANY if unsigned else Trust.SIGNED
    sent = _archive(file, trust) if file else _Sent(content=b"", words=("upgrade", "--back"), version=None)
    before = _looked_at(fleet)
    if why_not := objection(before, back=back):
        step = "with --node go back one after another" if back else "upgrade when all nodes answer"
        raise Refused(f"nothing was changed: {printable(why_not)}", step=step)
    course = _Course(left=list(turns(before, sent.version)))
    while course.left and course.trouble is None:
        name = course.left.pop(0)
        [node] = [each for each in fleet.nodes if each.name == name]
        course.trouble = _turn(fleet, node, sent) or _waited(fleet, before)
        if course.trouble is None:
            course.done.append(name)
            click.echo(f"{name}: is done", err=True)
        else:
            course.trouble = f"{name}: {course.trouble}"
    _print(course, as_json=as_json)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sent:
    """What each node is asked, and gets on standard input; the version is that of the archive's name."""

    content: bytes
    words: Sequence[str]
    version: str | None


def _archive(file: Path, trust: Trust) -> _Sent:
    """Return what an archive is sent with; raises Refused."""
    signature, options = b"", ["--unsigned"]
    try:
        given = archive.expected_checksum(file)
        with archive.private_copy(file) as opened:
            checksum = given or archive.digest(opened)
            archive.compare(opened, checksum)
            if trust is Trust.SIGNED:
                signature, options = verified(file, opened).text, []
            content = opened.read()
    except ArchiveRefused as error:
        raise Refused(f"{file}: {error}", step="copy or make the archive again") from error
    except OSError as error:
        raise Refused(f"{error.filename}: {error.strerror}", step="name the archive of a release") from error
    named = _NAME.fullmatch(file.name)
    return _Sent(
        content=signature + content,
        words=("upgrade", "-", "--sha256", checksum, *options),
        version=named and named["version"],
    )


def _turn(fleet: Fleet, node: FleetNode, sent: _Sent) -> str | None:
    """Upgrade one node; return why it failed, None if it did not."""
    click.echo(f"{node.name}: leaves, is upgraded, and takes part again", err=True)
    steps = (("leave", "--if-kept"), sent.words, ("reload",))
    command = fleet.begin(node, fleet.way.transport.sequence(node, steps, counts=1))
    with closed_at_the_end([command]):
        command.send(sent.content, last=True)
        wait([command], _has_ended, seconds=fleet.way.timeout + _UPGRADE)
    for line in command.errors.splitlines():
        click.echo(f"{node.name}: {printable(line)}", err=True)
    return None if command.status == 0 else missing(command) or _reason(command)


def _reason(command: RemoteCommand) -> str:
    """Return what the upgrade says of its failure: the next step, which follows, says less."""
    errors = [each for each in command.errors.splitlines() if each.startswith("Error: ")]
    return printable(errors[-1].removeprefix("Error: ")) if errors else why(command)


def _waited(fleet: Fleet, before: Sequence[NodeReport]) -> str | None:
    """Wait until all nodes are as well as before; return what is wrong if they are not in time."""
    until = time.monotonic() + fleet.way.timeout
    while True:
        found = new_problems(before, _looked_at(fleet))
        if not found:
            return None
        if time.monotonic() >= until:
            more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
            return printable("afterwards " + "; ".join(found[:_SHOWN]) + more)
        time.sleep(_LOOK_AGAIN)


def _looked_at(fleet: Fleet) -> tuple[NodeReport, ...]:
    return tuple(map(report, fleet.ask(["status", "--json"], progress=lambda _: None)))


def _has_ended(command: RemoteCommand) -> bool:
    return not command.is_running


def _print(course: _Course, *, as_json: bool) -> None:
    ok = course.trouble is None
    if as_json:
        print_json({"ok": ok, "done": course.done, "left": course.left, "trouble": course.trouble})
    else:
        click.echo(f"Done: {', '.join(course.done) or 'none'}.")
    if ok:
        return
    if as_json:
        raise SystemExit(1)
    left = f"; not begun: {', '.join(course.left)}" if course.left else ""
    raise Refused(f"stopped at {course.trouble}{left}", step=_BESIDE)
