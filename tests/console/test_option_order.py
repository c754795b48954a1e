"""Options of `appliance`: each means the same before and after the name of its command."""

from collections.abc import Iterator
from dataclasses import dataclass

import click
import pytest
from click.testing import CliRunner

from appliance.console.command import COMMANDS, main

pytestmark = pytest.mark.pure

_VALUES = {"path": "x", "file": "x", "directory": "/", "text": "a/b", "float range": "7.5", "float": "7.5"}
_OTHERS = {"path": "y", "file": "y", "directory": "/tmp", "text": "c/d", "float range": "8.5", "float": "8.5"}  # noqa: S108
_MORE = {
    "integer range": ("7", "8"),
    "integer": ("7", "8"),
    "ADDR/NET": ("192.0.2.1", "192.0.2.2"),
    "duration": ("1h", "2h"),
}


@dataclass(frozen=True, slots=True)
class Leaf:
    """A command that has no further ones, with the names that lead to it."""

    names: tuple[str, ...]
    command: click.Command

    @property
    def arguments(self) -> list[str]:
        """Words that its arguments accept."""
        return [
            next(iter(each.type.choices)) if isinstance(each.type, click.Choice) else "a/b"
            for each in self.command.params
            if isinstance(each, click.Argument) and each.required
        ]


def _leaves() -> Iterator[Leaf]:
    context = click.Context(main)
    for name in COMMANDS:
        command = main.get_command(context, name)
        assert command is not None
        yield from _below((name,), command)


def _below(names: tuple[str, ...], command: click.Command) -> Iterator[Leaf]:
    if not isinstance(command, click.Group) or command.invoke_without_command:
        yield Leaf(names, command)
    if isinstance(command, click.Group):
        for name, each in command.commands.items():
            yield from _below((*names, name), each)


LEAVES = tuple(_leaves())


def _options(command: click.Command) -> list[click.Option]:
    return [each for each in command.params if isinstance(each, click.Option)]


def _values(option: click.Option) -> tuple[str, str]:
    if isinstance(option.type, click.Choice):
        return next(iter(option.type.choices)), list(option.type.choices)[-1]
    if option.type.name in _MORE:
        return _MORE[option.type.name]
    return _VALUES[option.type.name], _OTHERS[option.type.name]


def _told(leaf: Leaf, words: list[str], monkeypatch: pytest.MonkeyPatch) -> object:
    """Return what the command is told where the line is `words`, or how it ended."""
    told: list[object] = []

    def note(**values: object) -> None:
        context = click.get_current_context()
        told.append((context.obj, values))

    with monkeypatch.context() as patch:
        patch.setattr(leaf.command, "callback", note)
        result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    return told


@pytest.mark.parametrize("leaf", LEAVES, ids=lambda leaf: " ".join(leaf.names))
def test_an_option_means_the_same_wherever_it_stands(leaf: Leaf, monkeypatch: pytest.MonkeyPatch):
    """Every option of every command, and those that all share: before the names, between, after, and last."""
    for option in [*_options(main), *_options(leaf.command)]:
        if option.is_eager:
            continue  # `--version` and `--help` do not run the command
        value = [] if option.is_flag else [_values(option)[0]]
        for spelling in option.opts:
            words = [spelling, *value]
            usual = _told(leaf, [*leaf.names, *words, *leaf.arguments], monkeypatch)
            for places in range(len(leaf.names)):
                line = [*leaf.names[:places], *words, *leaf.names[places:], *leaf.arguments]
                assert _told(leaf, line, monkeypatch) == usual, line
            assert _told(leaf, [*leaf.names, *leaf.arguments, *words], monkeypatch) == usual
            if value:
                joined = f"{spelling}={value[0]}" if spelling.startswith("--") else f"{spelling}{value[0]}"
                assert _told(leaf, [joined, *leaf.names, *leaf.arguments], monkeypatch) == usual


@pytest.mark.parametrize("leaf", LEAVES, ids=lambda leaf: " ".join(leaf.names))
def test_given_twice_the_later_counts(leaf: Leaf, monkeypatch: pytest.MonkeyPatch):
    """Whether it stands before the command, behind it, or once each."""
    for option in [*_options(main), *_options(leaf.command)]:
        if option.is_flag or option.multiple:
            continue
        name = option.opts[-1]
        first, second = ([name, each] for each in _values(option))
        usual = _told(leaf, [*leaf.names, *second, *leaf.arguments], monkeypatch)
        for line in (
            [*first, *second, *leaf.names, *leaf.arguments],
            [*first, *leaf.names, *second, *leaf.arguments],
            [*leaf.names, *first, *leaf.arguments, *second],
        ):
            assert _told(leaf, line, monkeypatch) == usual, line


def test_no_command_has_an_option_of_the_name_of_a_shared_one():
    """Otherwise nobody could tell which of the two is meant."""
    shared = {spelling for option in _options(main) for spelling in option.opts}
    for leaf in LEAVES:
        assert not shared & {spelling for option in _options(leaf.command) for spelling in option.opts}


@pytest.mark.parametrize("leaf", LEAVES, ids=lambda leaf: " ".join(leaf.names))
def test_help_and_version_may_stand_anywhere(leaf: Leaf):
    """The help is that of the command, whatever else the line holds."""
    usual = CliRunner().invoke(main, [*leaf.names, "--help"]).output
    assert f"appliance {' '.join(leaf.names)}" in usual.replace("main ", "appliance ")
    for line in (["--help", *leaf.names], ["-h", *leaf.names], [*leaf.names[:1], "--help", *leaf.names[1:]]):
        assert CliRunner().invoke(main, line).output == usual
    version = CliRunner().invoke(main, ["--version"]).output
    assert CliRunner().invoke(main, [*leaf.names, "--version"]).output == version


def test_a_value_may_have_the_name_of_a_command(monkeypatch: pytest.MonkeyPatch):
    """What follows an option that takes a value is that value."""
    sessions = next(each for each in LEAVES if each.names == ("sessions",))
    ((_, values),) = _told(sessions, ["--server", "check", "sessions"], monkeypatch)
    assert values["server"] == "check"
    kill = next(each for each in LEAVES if each.names == ("sessions", "kill"))
    ((_, values),) = _told(kill, ["--server", "kill", "sessions", "--json", "kill"], monkeypatch)
    assert (values["server"], values["as_json"]) == ("kill", True)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (["--nonsense", "status"], "--nonsense"),
        (["--json", "vr-idz", "x"], "--json"),
        (["statsu", "check"], "Did you mean 'status'?"),
        (["--server", "sessions"], "--server"),
        (["--", "statsu"], "Did you mean 'status'?"),
        (["--runtime-dir"], "--runtime-dir"),
        (["--json"], "--json"),
        (["-x", "import"], "-x"),
    ],
)
def test_what_makes_no_sense_is_misuse(line: list[str], said: str):
    """Click names what it does not know."""
    done = CliRunner().invoke(main, line)
    assert done.exit_code == 2
    assert said in done.output
