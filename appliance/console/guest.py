"""`appliance guest`: applies and shows the properties of a virtual machine, and keeps its screen."""

import os
import subprocess
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

import click

from appliance.console.output.printing import print_json
from appliance.console.output.refusal import Refused
from appliance.guest import applying
from appliance.guest.record import Record
from appliance.model.guest.appliance_settings import property_reader
from appliance.model.guest.machine_settings import machine
from appliance.model.guest.placement import Choice
from appliance.model.guest.properties import BY_KEY
from appliance.model.guest.report import GuestReport, Origin, legible
from appliance.model.paths import Paths
from appliance.net.files.guest_report_file import read
from appliance.net.logging.journal import SyslogSeverity, levelled
from appliance.net.logging.output import STDERR, STDOUT
from appliance.wire.ovf_environment import compose

_ASKED: Final = ("hostname", "address", "gateway", "dns", "ssh_key")
_SHORTEST: Final = 8
_TIMEOUT: Final = 60.0
_APPLY: Final = (
    ("systemctl", "restart", "appliance-guest.service"),
    ("networkctl", "reload"),
    ("systemctl", "try-restart", "ssh.service"),
)

_root = partial(
    click.option,
    "--root",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    default=Path("/"),
)


@click.group(epilog="Example: sudo appliance guest show")
def guest() -> None:
    """Apply and show the properties of a virtual machine (vSphere: vApp options)."""


@guest.command(epilog="Example: sudo appliance guest apply --overwrite && sudo appliance reload")
@click.option(
    "--overwrite",
    is_flag=True,
    help="Use the configuration of the properties; keep an edited one under another name.",
)
@click.option(
    "--keep", is_flag=True, help="Keep an edited configuration even if the properties have changed."
)
@_root(help="Write below this folder, for tests and images.")
@click.pass_obj
def apply(paths: Paths, *, overwrite: bool, keep: bool, root: Path) -> None:
    """Apply the properties: host name, network, time servers, SSH keys and configuration.

    Runs at every start of the machine, before the network. Problems in properties are reported here, on the
    console and by `appliance status`; the command does not fail because of them, as the machine has to start.
    Exits 1 if it cannot write a file.
    """
    if overwrite and keep:
        raise click.UsageError("--overwrite and --keep exclude each other")
    choice = Choice.OVERWRITE if overwrite else Choice.KEEP if keep else Choice.NONE
    root = root.absolute()
    applied = applying.apply(
        paths.below(root), root=root, environment=os.environ, choice=choice, now=time.time()
    )
    _print(applied.report)
    for failure in applied.failures:
        click.echo(levelled(failure, SyslogSeverity.ERROR, STDERR), err=True)
    if applied.failures:
        raise SystemExit(1)


@guest.command(epilog="Example: sudo appliance guest show --json | jq -r '.problems[].message'")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON; the keys are stable.")
@click.pass_obj
def show(paths: Paths, *, as_json: bool) -> None:
    """Show the properties that were given, where they came from, and what is wrong with them.

    Exits 1 if there are problems, or if nothing was applied since the machine started.

    JSON: origin (vmware, credential, iso, remembered, none), applied_at (Unix seconds), properties,
    problems (message, key, line and column in the configuration), notes, login_keys (how many keys open it),
    management (the only interface that ssh answers on, or null).
    """
    found = read(paths)
    if found is None:
        why, step = _why_absent(paths.guest_report)
        raise Refused(f"{paths.guest_report} {why}", step=step)
    if as_json:
        print_json(found)
    else:
        _print(found)
    if found.problems:
        raise SystemExit(1)


def _why_absent(path: Path) -> tuple[str, str]:
    """Return why there is no report, and the next step."""
    try:
        path.open("rb").close()
    except PermissionError:
        return "cannot be read by this user", "`sudo appliance guest show`"
    except OSError:
        return "is not there", "`sudo appliance guest apply` writes it"
    return "is damaged", "`sudo appliance guest apply` writes it again"


_ORIGINS = {
    Origin.VMWARE: "VMware's tool",
    Origin.CREDENTIAL: "a systemd credential",
    Origin.ISO: "an OVF ISO",
    Origin.REMEMBERED: "an earlier start",
    Origin.NONE: "nowhere",
}


def _print(report: GuestReport) -> None:
    at = datetime.fromtimestamp(report.applied_at, tz=UTC).isoformat(sep=" ", timespec="seconds")
    click.echo(f"properties from {_ORIGINS[report.origin]}, applied {at}")
    for key, value in report.properties.items():
        click.echo(f"  {key}: {legible(value)}")
    for problem in report.problems:
        click.echo(levelled(f"! {problem}", SyslogSeverity.WARNING, STDOUT))
    for note in report.notes:
        click.echo(f"- {legible(note)}")


@guest.command(epilog="Example: sudo appliance guest setup")
@_root(help="Write below this folder and change nothing of this machine, for tests.")
@click.pass_obj
def setup(paths: Paths, *, root: Path) -> None:
    """Ask at the console for the settings that no property has: a password, and the network.

    Runs before the login prompt of a machine that has never had properties. The password of the user admin
    opens the console only, since SSH takes keys only. The answers are kept until the machine gets properties
    from its hypervisor, which replace all of them.
    """
    from appliance.console.screen import screen  # noqa: PLC0415  # the boot waits for `apply`, which starts faster without

    click.echo(screen.current_screen(paths))
    click.echo("This machine has no properties. Enter leaves an answer empty; Ctrl-C leaves all as it is.")
    password = _password()
    while True:
        typed = {key: click.prompt(_question(key), default="", show_default=False) for key in _ASKED}
        reader = property_reader(typed)
        machine(reader)
        for problem in reader.problems:
            click.echo(f"! {problem}")
        if not reader.problems or click.confirm("Use what is right of it?"):
            break
    Record(root).keep_environment(compose({key: value for key, value in typed.items() if value}))
    if root == Path("/"):
        _run(("chpasswd",), f"admin:{password}\n")
        for command in _APPLY:
            _run(command)
    click.echo("Done. Log in here as admin, with the password; then `sudo appliance status`.")


def _question(key: str) -> str:
    return f"{BY_KEY[key].label}: {BY_KEY[key].description}\n"


def _password() -> str:
    while True:
        text: str = click.prompt(
            "Password of the user admin at this console", hide_input=True, confirmation_prompt=True
        )
        if len(text) >= _SHORTEST and text.isprintable():
            return text
        click.echo(f"! at least {_SHORTEST} characters, all of them printable")


def _run(command: tuple[str, ...], given: str = "") -> None:
    done = subprocess.run(  # noqa: S603  # no shell
        command, input=given, text=True, timeout=_TIMEOUT, check=False
    )
    if done.returncode:
        raise Refused(f"{command[0]} has failed", step="its messages: `journalctl --boot`")


@guest.command(epilog="Example: appliance guest console --once")
@click.option("--once", is_flag=True, help="Print it and end.")
@click.option(
    "--issue",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("/run/issue.d/appliance.issue"),
    show_default=True,
    help="File that agetty shows above its login prompt.",
)
@click.pass_obj
def console(paths: Paths, *, once: bool, issue: Path) -> None:
    """Update what a virtual machine's console shows: addresses, state, problems and next steps.

    Runs until it is stopped. Writes the file and notifies agetty only when something has changed.
    """
    from appliance.console.screen import screen  # noqa: PLC0415  # the boot waits for `apply`, which starts faster without

    if once:
        click.echo(screen.current_screen(paths), nl=False)
        return
    screen.keep(paths, issue)
