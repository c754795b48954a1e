"""`appliance upgrade`: this release takes the place of the one that runs."""

from typing import Final

import click

from appliance import __version__
from appliance.console.output.printing import print_json
from appliance.console.output.refusal import LOOK, Refused
from appliance.console.runtime_access import require_access
from appliance.model.paths import Paths
from appliance.net.process import python
from appliance.net.supervision import upgrade_request
from appliance.net.supervision.upgrade_request import NobodyToUpgrade, Upgraded

_TIMEOUT: Final = 240.0  # seconds: longer than a release may take to come up, or to fail
_LOG: Final = f"the one that ran goes on; its log has the rest, and {LOOK}"
_START: Final = "`systemctl start appliance`, where it does not run"


@click.command(epilog="Example: /opt/appliance-1.1.0/bin/appliance upgrade && appliance status")
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
@click.pass_obj
def upgrade(paths: Paths, *, as_json: bool) -> None:
    """Have this release take over from the one that runs, with everything that is open.

    The supervisord that runs starts `appliance run` of the release whose command this is, in its own service:
    for systemd the service goes on with another main process. That one takes listeners, sessions, virtual
    IPs, verdicts and what you said of servers over, and the former one ends. The way back is the same
    command of the former release. For root; for its owner too where the appliance runs without rights that
    an ordinary user lacks.

    Waits for the outcome. Exits 0 when this release is in charge, and 1 when it is not: then the one that ran
    goes on as before.

    JSON: ok, version and pid (of what is in charge now), or errors.
    """
    require_access(paths.runtime)
    errors: list[str] = []
    found: Upgraded | None = None
    try:
        answer = upgrade_request.ask(paths.succession_socket, python.own_command(), timeout=_TIMEOUT)
        errors = [each.message for each in answer.errors]
        found = upgrade_request.upgraded(answer) if answer.ok else None
    except NobodyToUpgrade as error:
        if not as_json:
            raise Refused(f"nobody to take over from: {error}", step=_START) from error
        errors = [str(error)]
    if as_json:
        print_json(
            {"ok": True, "version": found.version, "pid": found.pid}
            if found
            else {"ok": False, "errors": errors}
        )
    elif found:
        click.echo(
            f"Version {found.version} is in charge, with everything that was open: process {found.pid}."
        )
    else:
        raise Refused(f"version {__version__} has not taken over: {'; '.join(errors)}", step=_LOG)
    if not found:
        raise SystemExit(1)
