"""Shell completion by click, extended: the options of all commands are offered everywhere."""

from typing import Final

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
)

from appliance.console.option_order import shared_options

VARIABLE: Final = "_APPLIANCE_COMPLETE"
"""Environment variable by which a shell's script asks; click derives it from the command's name."""


class _SharedOptions(ShellComplete):
    """Completes words before and after a command's name."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[str]]:
        """Return the possible next words that begin with the incomplete one."""
        root = click.Context(self.cli, info_name=self.prog_name, **self.cli.context_settings)
        assert isinstance(self.cli, click.Group)  # noqa: S101  # it is our one group
        shared = shared_options(self.cli, root)
        if args and shared.get(args[-1]):
            return self._values(args[-1], incomplete)
        offered = super().get_completions(args, incomplete)
        if not incomplete.startswith("-"):
            return offered
        known = {item.value for item in offered}
        more = [each for each in self.cli.shell_complete(root, incomplete) if each.value not in known]
        return [*offered, *more]

    def _values(self, option: str, incomplete: str) -> list[CompletionItem[str]]:
        root = click.Context(self.cli, info_name=self.prog_name, **self.cli.context_settings)
        named = (each for each in self.cli.get_params(root) if option in each.opts)
        return [item for each in named for item in each.shell_complete(root, incomplete)]


class Bash(_SharedOptions, BashComplete):
    """Bash 4.4 or newer."""

    def source(self) -> str:
        """Return the script without checking the local bash version: it may be meant for another machine."""
        return ShellComplete.source(self)


class Zsh(_SharedOptions, ZshComplete):
    """Zsh, from a directory of fpath or by eval."""

    def source(self) -> str:
        """Return the script, which completes each time: click's only registers itself at the first one."""
        return super().source().replace("== loadautofunc ]]", "== (loadautofunc|shfunc) ]]")


class Fish(_SharedOptions, FishComplete):
    """Fish."""


SHELLS: Final[dict[str, type[_SharedOptions]]] = {"bash": Bash, "zsh": Zsh, "fish": Fish}
"""The shells by their names."""


def register() -> None:
    """Make click use these instead of its own."""
    for name, shell in SHELLS.items():
        add_completion_class(shell, name)
