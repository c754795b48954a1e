"""`appliance upgrade`: replaces the running release by this one, that of an archive or the former one."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click

from appliance import __version__
from appliance.console import releases
from appliance.console.output.printing import print_json
from appliance.console.output.refusal import LOOK, Refused
from appliance.console.releases import Trust
from appliance.console.runtime_access import require_access
from appliance.model.paths import Paths
from appliance.net.files.standard_input import read_standard_input
from appliance.net.files.state_files import FileUnusable
from appliance.net.process import python
from appliance.net.releases import installation
from appliance.net.releases.archive import MOST_BYTES
from appliance.net.releases.release_folders import PREFIX, ReleaseFolders
from appliance.net.releases.signing import SUFFIX
from appliance.supervisor.succession import upgrade_request
from appliance.supervisor.succession.upgrade_request import NobodyThere, NobodyToUpgrade, Upgraded
from appliance.wire import release_signature
from appliance.wire.release_signature import SignatureError

_TIMEOUT: Final = 240.0  # seconds: longer than a release may take to come up, or to fail
_STANDARD_INPUT: Final = "-"
UNSIGNED: Final = "Accept any archive: whoever made or changed it gets the rights of root on the machine."
"""What the option of that name means, for one node and for all."""

_LOG: Final = f"the one that ran continues; its log has the rest, and {LOOK}"
_START: Final = "`systemctl start appliance`, where it does not run"


@click.command(epilog="Example: appliance upgrade lb-appliance-0.2.0.tar.gz && appliance status")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--back", is_flag=True, help="Return to the release that ran before this one.")
@click.option("--sha256", "checksum", metavar="HEX", help="The checksum of FILE, where FILE.sha256 has none.")
@click.option("--unsigned", is_flag=True, help=UNSIGNED)
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
@click.pass_obj
def upgrade(
    paths: Paths, *, file: Path | None, back: bool, checksum: str | None, unsigned: bool, as_json: bool
) -> None:
    """Replace the running release with this one; everything that is open continues.

    The running supervisord starts `appliance run` of the release that this command belongs to, in its own
    service: for systemd, the service gets another main process. The new release takes over listeners,
    sessions, virtual IPs, verdicts and the states that operators have set for servers, and the former one
    exits. To go back, run the same command of the former release. Requires root; the owner of an appliance
    that runs without special rights may do it too.

    With FILE, the archive of a release, that release is installed below /opt first, without a network. FILE
    must be signed with a key of the installed release; its signature is FILE.sig. Each part is verified by
    its hash. Once in charge, it is the one that starts after a reboot, too; if it cannot take over, it is
    removed. `-` is standard input, with the signature before the archive. --back returns to the release
    before.

    Waits for the outcome. Exits 0 if the release is in charge, else 1; the release that ran continues then.

    JSON: ok, version and pid (of what is in charge now), or errors.
    """
    if (file and back) or ((checksum or unsigned) and not file):
        raise click.UsageError("--back takes no FILE, and --sha256 and --unsigned are of one")
    require_access(paths.runtime)
    try:
        if file or back:
            with _in_a_file(file) as archive:
                folders = ReleaseFolders()
                if archive:
                    trust = Trust.ANY if unsigned else Trust.SIGNED
                    name = releases.installed(archive, folders, checksum=checksum, trust=trust)
                else:
                    name = releases.way_back(folders)
                found = _of_folder(paths, folders, name, is_new=archive is not None)
        else:
            found = _taken_over(paths, python.own_command(), f"version {__version__}")
    except Refused as error:
        if not as_json:
            raise
        print_json({"ok": False, "errors": [error.message]})
        raise SystemExit(1) from error
    if as_json:
        print_json({"ok": True, "version": found.version, "pid": found.pid})
    elif found.pid:
        click.echo(
            f"Version {found.version} is in charge, with everything that was open: process {found.pid}."
        )


@contextmanager
def _in_a_file(file: Path | None) -> Iterator[Path | None]:
    """Give the file, for standard input a temporary one with its content; raises Refused."""
    if file is None or str(file) != _STANDARD_INPUT:
        yield file
        return
    with tempfile.TemporaryDirectory(prefix="appliance-upgrade-") as folder:
        path = Path(folder) / "standard-input"
        try:
            signature, content = release_signature.split(read_standard_input(limit=MOST_BYTES))
            path.write_bytes(content)
            if signature:
                path.with_name(path.name + SUFFIX).write_bytes(signature)
        except SignatureError as error:
            raise Refused(f"standard input: its signature: {error}", step="send both again") from error
        except (FileUnusable, OSError) as error:
            raise Refused(f"standard input {error}", step="send the archive again") from error
        yield path


def _of_folder(paths: Paths, folders: ReleaseFolders, name: str, *, is_new: bool) -> Upgraded:
    """Make an installed release take over; process 0 if none runs."""
    try:
        found = _taken_over(paths, [str(folders.command(name))], name)
    except _NobodyRunsError:
        found = Upgraded(version=name.removeprefix(PREFIX), pid=0)
        click.echo("No appliance runs here that it could take over from.", err=True)
    except Refused as error:
        folders.withdraw()
        if is_new and isinstance(error, _NotTakenOverError):
            installation.remove(folders, name)
        raise
    releases.choose(name, folders)
    return found


class _NobodyRunsError(Refused):
    """No appliance runs from which to take over."""


class _NotTakenOverError(Refused):
    """The release could not take over, and the running one continues."""


def _taken_over(paths: Paths, command: Sequence[str], named: str) -> Upgraded:
    """Ask the running supervisord to start this command, and wait; raises Refused."""
    try:
        answer = upgrade_request.ask(paths.succession_socket, command, timeout=_TIMEOUT)
        if answer.ok:
            return upgrade_request.upgraded(answer)
    except NobodyThere as error:
        raise _NobodyRunsError(f"no appliance to take over from: {error}", step=_START) from error
    except NobodyToUpgrade as error:
        raise Refused(f"it is not known whether {named} has taken over: {error}", step=LOOK) from error
    raise _NotTakenOverError(f"{named} has not taken over: {answer.reason}", step=_LOG)
