"""Every command of ours in a block of a page is one that the appliance's own parser takes."""

import re
from typing import Final

import pytest
from support.documents.command_lines import CommandLine, complaint, ours, typed
from support.documents.pages import ROOT, blocks, name_of, pages

from appliance.console.command import COMMANDS

pytestmark = pytest.mark.pure

_TYPED: Final = [
    line
    for path in pages()
    for block in blocks(path, "console")
    for line in typed(block)
    if "appliance" in line.text
]
_INLINE: Final = re.compile(r"`(?:[\w-]*[$#] )?appliance ([a-z][a-z-]*)")
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


@pytest.mark.parametrize("path", pages(), ids=name_of)
def test_commands_in_the_text_exist(path):  # noqa: ANN001  # a path, as the line above says
    """What a sentence calls `appliance NAME` is a command."""
    named = set(_INLINE.findall(path.read_text())) - {"pod"}
    assert named - COMMANDS.keys() == set()


@pytest.mark.parametrize("path", pages(), ids=name_of)
def test_targets_of_make_exist(path):  # noqa: ANN001  # a path, as the line above says
    """What is called `make NAME` is a target."""
    targets = set(re.findall(r"^([a-z][a-z -]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    known = {each for line in targets for each in line.split()}
    assert set(_TARGET.findall(path.read_text())) - known == set()
