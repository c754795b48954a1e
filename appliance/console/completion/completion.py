"""`appliance completion`: the script by which a shell completes our commands, options and names."""

import click

from appliance.console.completion.shells import SHELLS, VARIABLE


@click.command(epilog='Example: eval "$(appliance completion bash)"')
@click.argument("shell", type=click.Choice(list(SHELLS)))
@click.pass_context
def completion(ctx: click.Context, *, shell: str) -> None:
    """Print the script for SHELL: bash, zsh or fish.

    To install it, write it to ~/.local/share/bash-completion/completions/appliance, to a file _appliance in a
    directory of zsh's fpath, or to ~/.config/fish/completions/appliance.fish. The image and the virtual
    machine have all three. It completes the names of servers, pools, frontends and virtual IPs of the running
    appliance, if this user may read them.
    """
    root = ctx.find_root().command
    click.echo(SHELLS[shell](root, {}, "appliance", VARIABLE).source())
