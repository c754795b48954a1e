"""The `appliance` command: its subcommands, and the options that they share.

A subcommand is imported only when it is called, because most need far less than all of them together:
`appliance vr-ids` in a shell loop must not wait for the validator of configurations to load.

Exit codes: 0 ok, 1 failure or refusal, 2 usage error, 130 interrupted.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Final

import click

import appliance
from appliance.console.option_order import name_first, shared_and_others, shared_options
from appliance.console.output.refusal import Refused
from appliance.model.paths import (
    CONFIG_VARIABLE,
    HAPROXY_VARIABLE,
    KEEPALIVED_VARIABLE,
    RELOAD_SOCKETS_VARIABLE,
    RUNTIME_VARIABLE,
    STATE_VARIABLE,
    Paths,
)
from appliance.net.privileges import drop_privileges

INTERRUPTED: Final = 130
"""128 + SIGINT, as shells expect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subcommand:
    """The module and attribute of a subcommand, and its line in the overview."""

    module: str
    attribute: str
    summary: str


COMMANDS: Final[Mapping[str, Subcommand]] = {
    name: Subcommand(module=f"appliance.console.{module}", attribute=attribute, summary=summary)
    for name, module, attribute, summary in (
        ("run", "run", "run", "Run the whole appliance in the foreground."),
        ("demo", "demo.demo", "demo", "Run the appliance with generated backends, without root."),
        ("check", "check", "check", "Validate a configuration and print every error."),
        ("import", "import_files", "import_files", "Turn haproxy.cfg and keepalived.conf into YAML."),
        ("completion", "completion.completion", "completion", "Print the completion script of a shell."),
        ("schema", "schema", "schema", "Print the JSON Schema of the configuration."),
        ("reload", "reload", "reload", "Apply the configuration as it is now."),
        ("status", "status.status", "status", "Show programs, virtual IPs, frontends, pools and servers."),
        ("top", "top.top", "top", "Show live figures: rates, sessions, queues, checks, errors."),
        ("why", "why", "why", "Explain the state of a server, pool, frontend, address or BGP session."),
        (
            "alive",
            "status.alive",
            "alive",
            "Report whether the appliance serves: for health checks of containers.",
        ),
        ("drain", "server_commands", "drain", "Send servers no new connections; open ones continue."),
        ("ready", "server_commands", "ready", "Return servers to the control of their checks."),
        ("maint", "server_commands", "maint", "Take servers out of service."),
        ("weight", "server_commands", "weight", "Change the weight of servers."),
        ("sessions", "sessions", "sessions", "List the connections, or end some of them."),
        ("events", "events", "events", "Show what happened and why, also before the last restart."),
        ("vip", "vip.vip", "vip", "Show virtual IPs, move one away, or take part again."),
        ("bgp", "bgp.bgp", "bgp", "Show shared IPs and BGP sessions, or print what another daemon needs."),
        ("fleet", "fleet.fleet", "fleet", "Do the same on all nodes of one configuration, by ssh."),
        ("upgrade", "upgrade", "upgrade", "Replace the running release with this one."),
        (
            "leave",
            "leave",
            "leave",
            "Hand the virtual IPs to other nodes, and wait until their connections have ended.",
        ),
        ("rebalance", "rebalance", "rebalance", "Give another node a share of the sessions of shared IPs."),
        (
            "discover",
            "discover.discover",
            "discover",
            "Show the servers found in the cluster's API, and how old that is.",
        ),
        ("support", "support.support", "support", "Write one archive for a ticket, without secrets."),
        ("guest", "guest", "guest", "Apply and show the properties of a virtual machine."),
        ("vr-ids", "vip.vr_ids", "vr_ids", "Print the virtual router ids of a cluster."),
    )
}


class Appliance(click.Group):
    """A group that imports a subcommand only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click's signature
        """Return the names in the order of the overview: the order in which operators need them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Return the subcommand of that name, None if there is none."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        command: click.Command = getattr(import_module(entry.module), entry.attribute)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Accept every option before or after the subcommand's name."""
        shared, others = shared_and_others(args, shared_options(self, ctx))
        return super().parse_args(ctx, [*shared, *(name_first(self, ctx, others) or others)])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the subcommand; for an unknown one suggest a similar name."""
        near = get_close_matches(args[0], COMMANDS, n=1)
        if args[0] not in COMMANDS and near:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {near[0]!r}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the overview from the table, without importing the subcommands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> object:
        """Run the subcommand; Ctrl-C ends it without a traceback."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)


_path = partial(click.option, type=click.Path(path_type=Path, readable=False), show_envvar=True)


@click.group(
    cls=Appliance,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: appliance check && appliance run",
)
@_path(
    "--config",
    envvar=CONFIG_VARIABLE,
    default=Paths().config,
    show_default=True,
    help="The operator's configuration.",
)
@_path(
    "--runtime-dir",
    envvar=RUNTIME_VARIABLE,
    default=Paths().runtime,
    show_default=True,
    help="Sockets, boards and the accepted configuration.",
)
@_path(
    "--state-dir",
    envvar=STATE_VARIABLE,
    default=Paths().state,
    show_default=True,
    help="Directory of what outlives a reboot.",
)
@_path(
    "--haproxy",
    multiple=True,
    envvar=HAPROXY_VARIABLE,
    help="A haproxy.cfg, or a directory of them, to use beside the configuration or instead of it; "
    "can be repeated, as HAProxy's -f.",
)
@_path(
    "--keepalived",
    envvar=KEEPALIVED_VARIABLE,
    help="A keepalived.conf to use in the same way.",
)
@_path(
    "--reload-socket",
    "reload_sockets",
    multiple=True,
    envvar=RELOAD_SOCKETS_VARIABLE,
    help="Another socket that accepts the line `reload`, from the start on; can be repeated.",
)
@click.version_option(appliance.__version__, prog_name="appliance", message="%(prog)s %(version)s")
@click.pass_context
def main(
    ctx: click.Context,
    *,
    config: Path,
    runtime_dir: Path,
    state_dir: Path,
    haproxy: tuple[Path, ...],
    keepalived: Path | None,
    reload_sockets: tuple[Path, ...],
) -> None:
    """Balance the API and ingress of a cluster: the work of HAProxy and keepalived together.

    Every option may stand before a command or behind it: appliance status --runtime-dir DIR. If an option is
    given twice, the last one counts.
    """
    paths = Paths(
        config=config,
        runtime=runtime_dir,
        state=state_dir,
        haproxy=haproxy,
        keepalived=keepalived,
        reload_sockets=reload_sockets,
    ).absolute()
    if user := os.environ.get(drop_privileges.USER_VARIABLE):
        try:
            drop_privileges.become(user, owned=(paths.runtime, paths.state))
        except drop_privileges.CannotBecomeError as error:
            raise Refused(
                str(error), step=f"put {drop_privileges.USER_VARIABLE} right, or remove it from the command"
            ) from error
    ctx.obj = paths
