"""`appliance guest setup`: asks at the console of a virtual machine for what no property says."""

import subprocess
from pathlib import Path
from typing import Final

import click

from appliance.console.output.refusal import Refused
from appliance.guest.record import Record
from appliance.model.guest.machine import machine
from appliance.model.guest.properties import BY_KEY
from appliance.model.guest.settings import property_reader
from appliance.model.paths import Paths
from appliance.wire.ovf_environment import compose

_ASKED: Final = ("hostname", "address", "gateway", "dns", "ssh_key")
_SHORTEST: Final = 8
_TIMEOUT: Final = 60.0
_APPLY: Final = (
    ("systemctl", "restart", "appliance-guest.service"),
    ("networkctl", "reload"),
    ("systemctl", "try-restart", "ssh.service"),
)


@click.command(epilog="Example: sudo appliance guest setup")
@click.option(
    "--root",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    default=Path("/"),
    help="Write below this folder and change nothing of this machine, for tests.",
)
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
