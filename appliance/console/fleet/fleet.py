"""`appliance fleet`: the options that its subcommands share."""

from typing import Final

import click

from appliance.console.fleet.accept import accept
from appliance.console.fleet.asking import Way
from appliance.console.fleet.check import fleet_check
from appliance.console.fleet.push import fleet_push
from appliance.console.fleet.server_commands import fleet_drain, fleet_maint, fleet_ready, fleet_weight
from appliance.console.fleet.ssh_commands import VIA, Transport
from appliance.console.fleet.status import fleet_status
from appliance.console.fleet.support import fleet_support
from appliance.console.fleet.upgrade import fleet_upgrade
from appliance.console.option_order import shared_and_others, shared_options
from appliance.model.paths import Paths

_TIMEOUT: Final = 60.0


class _Fleet(click.Group):
    """A group whose options may stand before or after the subcommand's name."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Give the group its options, wherever they are."""
        shared, others = shared_and_others(args, shared_options(self, ctx))
        return super().parse_args(ctx, [*shared, *others])


@click.group(cls=_Fleet, epilog="Example: appliance fleet status && appliance fleet push appliance.yaml")
@click.option(
    "--ssh-option",
    "ssh_options",
    multiple=True,
    metavar="KEY=VALUE",
    help="An option of ssh_config(5), such as User=root; can be repeated.",
)
@click.option(
    "--via",
    type=click.Choice(sorted(VIA)),
    help="How a node's command is reached there: in its container `appliance`, or by sudo.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=_TIMEOUT,
    show_default=True,
    metavar="SECONDS",
    help="How long one step may take on a node.",
)
@click.option(
    "--node", "only", multiple=True, metavar="NAME", help="Only this node of them; can be repeated."
)
@click.pass_context
def fleet(
    ctx: click.Context,
    *,
    ssh_options: tuple[str, ...],
    via: str | None,
    timeout: float,
    only: tuple[str, ...],
) -> None:
    """Do the same on all nodes of one configuration.

    The nodes are those that `nodes` of the configuration names: the file of --config, or the one that is
    pushed. Each is reached by its name with OpenSSH's client, `ssh lb-0`, whose own configuration has
    addresses, users, keys and jump hosts; it never asks for a password. On this node, commands run without
    ssh. A node that cannot be reached, or does not answer in --timeout, is named, and the others are asked.

    What happens is reported on standard error while it happens. Exit codes: 0 if all is well on all nodes, 1
    if a node refused, failed, or could not be reached, 2 for usage errors, 130 after Ctrl-C.
    """
    paths: Paths = ctx.obj
    transport = Transport(options=ssh_options, via=via)
    ctx.obj = Way(paths=paths, transport=transport, timeout=timeout, only=only)


for _each in (
    fleet_status,
    fleet_check,
    fleet_push,
    fleet_drain,
    fleet_ready,
    fleet_maint,
    fleet_weight,
    fleet_upgrade,
    fleet_support,
    accept,
):
    fleet.add_command(_each)
