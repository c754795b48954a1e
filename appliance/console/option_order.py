"""Options before and after the subcommand: reorders the words of a command line for click.

click assigns each option to the command whose name it follows. Here an option means the same in any place:
`appliance --json status --runtime-dir DIR` is `appliance --runtime-dir DIR status --json`. Repeated options
keep their order, so that the last one counts. After `--` nothing is an option.
"""

from collections.abc import Mapping, Sequence

import click

Options = Mapping[str, bool]
"""The spellings of options (`--output`, `-o`), and whether the next word is their value."""


def options_of(command: click.Command, ctx: click.Context) -> Options:
    """Return the options of a command, `--help` too."""
    return {
        spelling: not (each.is_flag or each.count)
        for each in command.get_params(ctx)
        if isinstance(each, click.Option)
        for spelling in (*each.opts, *each.secondary_opts)
    }


def shared_options(group: click.Group, ctx: click.Context) -> Options:
    """Return the options of a group that all its subcommands share: each has its own `--help`."""
    return {
        name: takes for name, takes in options_of(group, ctx).items() if name not in ctx.help_option_names
    }


def shared_and_others(words: Sequence[str], shared: Options) -> tuple[list[str], list[str]]:
    """Return the shared options with their values, wherever they are, and all other words."""
    first: list[str] = []
    others: list[str] = []
    left = iter(words)
    for word in left:
        if word == "--":
            return first, [*others, word, *left]
        if shared.get(word):
            value = next(left, None)
            if value is None:
                return [*first, word], []  # click reports the missing value
            first += [word, value]
        elif word.partition("=")[0] in shared:
            first.append(word)
        else:
            others.append(word)
    return first, others


def name_first(group: click.Group, ctx: click.Context, words: Sequence[str]) -> list[str] | None:
    """Return the words with a subcommand's name before its options, None without a subcommand.

    The name is the first word that names a subcommand, and is preceded only by that subcommand's options and
    their values: `--server check sessions` is `sessions --server check`.
    """
    for at, word in enumerate(words):
        if word == "--":
            return None
        command = group.get_command(ctx, word)
        if command is None:
            continue
        below = click.Context(command, info_name=word, parent=ctx)
        before, rest = words[:at], [*words[:at], *words[at + 1 :]]
        deeper = name_first(command, below, rest) if isinstance(command, click.Group) else None
        if deeper is not None:
            return [word, *deeper]
        if _are_options(before, options_of(command, below)):
            return [word, *rest]
    return None


def _are_options(words: Sequence[str], known: Options) -> bool:
    """Return whether the words are only known options with their values."""
    left = iter(words)
    for word in left:
        if word in known:
            if known[word] and next(left, None) is None:
                return False
        elif not _has_its_value(word, known):
            return False
    return True


def _has_its_value(word: str, known: Options) -> bool:
    """Return whether a word is a known option including its value: `--output=FILE`, `-oFILE`."""
    name, sign, _ = word.partition("=")
    return known.get(name if sign and word.startswith("--") else word[:2], False)
