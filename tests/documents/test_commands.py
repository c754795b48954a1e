"""Every command of ours that pages and messages show or name is one that the appliance's own parser takes."""

import re
from collections.abc import Iterator
from typing import Final

import click
import pytest
from support.documents.command_lines import CommandLine, complaint, ours, typed
from support.documents.named_commands import of_page, of_source, of_text, wrong_in
from support.documents.pages import ROOT, blocks, name_of, pages

from appliance.console.command import main

pytestmark = pytest.mark.pure

_TYPED: Final = [
    line
    for path in pages()
    for block in blocks(path, "console")
    for line in typed(block)
    if "appliance" in line.text
]
_SENTENCES: Final = (*pages(), ROOT / "CONTRIBUTING.md")
_SOURCES: Final = tuple(sorted((ROOT / "appliance").rglob("*.py")))
_TARGET: Final = re.compile(r"(?:`|[$#] )make ([a-z-]+)")


@pytest.mark.parametrize("line", _TYPED, ids=str)
def test_it_is_parsed(line: CommandLine):
    """With each of its arguments and options."""
    assert [said for each in ours(line.text) if (said := complaint(each))] == []


def test_there_are_many():
    """What is looked for is found: the commands of every day are among them."""
    first = {each[0] for line in _TYPED for each in ours(line.text) if each}
    assert first >= {"check", "run", "reload", "status", "sessions", "maint", "vip", "vr-ids", "import"}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("appliance statsu", "No such command 'statsu'"),
        ("appliance vip mvoe api", "No such command 'mvoe'"),
        ("appliance reload --forced", "No such option"),
        ("cd / && appliance status --jsno | jq .", "No such option"),
        ("podman exec appliance appliance satus", "No such command"),
        ("lb$ appliance drain", "Missing argument"),
    ],
)
def test_a_wrong_one_is_found(line: str, said: str):
    """A misspelt command or option, and an argument that is missing."""
    (arguments,) = ours(line.removeprefix("lb$ "))
    assert said in (complaint(arguments) or "")


@pytest.mark.parametrize("path", _SENTENCES, ids=name_of)
def test_commands_in_the_text_exist(path):  # noqa: ANN001  # a path, as the line above says
    """What a sentence calls `appliance NAME ...` is one, with its subcommand and its options."""
    assert [said for each in of_page(path.read_text()) if (said := wrong_in(each))] == []


def test_commands_in_messages_exist():
    """Of every module: log events, next steps, refusals, help; what is filled in may be any word."""
    named = {each: name_of(path) for path in _SOURCES for each in of_source(path)}
    assert len(named) >= 50
    assert [f"{where}: {said}" for each, where in named.items() if (said := wrong_in(each))] == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("see: `appliance statsu`", "No such command 'statsu'"),
        ("`appliance vip NAME` counts them", "No such command 'NAME'"),
        ("`appliance vip` shows who holds them", "Usage: appliance vip"),
        ("`sudo appliance reload --forced`", "No such option"),
        ("`appliance drain|mant|ready`", "No such command 'mant'"),
        ("`appliance sessions [--al]`", "No such option"),
        ("Once they are mended: appliance relod", "No such command 'relod'"),
    ],
)
def test_a_wrong_one_in_a_sentence_is_found(text: str, said: str):
    """A subcommand that is missing or misspelt, an option, one of several choices."""
    (command,) = of_text(text)
    assert said in (wrong_in(command) or "")


@pytest.mark.parametrize(
    "text",
    [
        "`appliance drain` asks",
        "`appliance sessions kill --source` ends others",
        "`appliance weight POOL/SERVER N|N%`",
        "`appliance drain|maint|ready`",
        "mend it: appliance reload",
    ],
)
def test_what_a_sentence_may_leave_out(text: str):
    """Arguments of a command that it names, and values of its options."""
    (command,) = of_text(text)
    assert wrong_in(command) is None


def _examples(command: click.Command) -> Iterator[str]:
    yield (command.epilog or "").removeprefix("Example: ")
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from _examples(below)


def test_examples_of_the_help_are_parsed():
    """They can be copied: each is whole."""
    examples = set(_examples(main)) - {""}
    assert len(examples) >= 25
    assert [said for line in examples for each in ours(line) if (said := complaint(each))] == []


@pytest.mark.parametrize("path", pages(), ids=name_of)
def test_targets_of_make_exist(path):  # noqa: ANN001  # a path, as the line above says
    """What is called `make NAME` is a target."""
    targets = set(re.findall(r"^([a-z][a-z -]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    known = {each for line in targets for each in line.split()}
    assert set(_TARGET.findall(path.read_text())) - known == set()
