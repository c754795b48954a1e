"""Manual pages: complete, the same as `--help`, and without a complaint of those who format them."""

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from appliance.console.command import COMMANDS, main
from appliance.console.manual.pages import EXAMPLE, escaped, line, pages, quoted
from appliance.model.config.key_reference import key_sections
from appliance.model.loading.loading import load

pytestmark = pytest.mark.programs

PAGES = dict(pages())


def shown(text: str) -> str:
    """Return a page as man shows it, on one line, without the hyphens of the formatter."""
    command = ["man", "--local-file", "--pager=cat", "--no-hyphenation", "--no-justification", "-"]
    formatted = subprocess.run(
        command,
        input=text,
        env={"LC_ALL": "C.UTF-8", "MANWIDTH": "400", "PATH": "/usr/bin:/bin", "MAN_KEEP_FORMATTING": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    return " ".join(re.sub(r"\x1b\[[0-9;]*m|.\x08", "", formatted.stdout).split())


def test_there_is_a_page_for_each_command():
    """And one that names them all."""
    assert set(PAGES) == {"appliance.1", "appliance.yaml.5", *(f"appliance-{name}.1" for name in COMMANDS)}
    assert all(
        f"See appliance\\-{name.replace('-', chr(92) + '-')}(1)" in PAGES["appliance.1"] for name in COMMANDS
    )


@pytest.mark.needs("man", "groff")
@pytest.mark.parametrize("name", PAGES)
def test_nobody_complains(name: str):
    """Neither groff, with all its warnings, nor mandoc's checker finds anything wrong."""
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-z"],
        input=PAGES[name],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""


@pytest.mark.needs("mandoc")
def test_mandoc_does_not_complain(tmp_path: Path):
    """All pages at once, at the level of warnings; that there is no date is as it should be."""
    for name, text in PAGES.items():
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        ["mandoc", "-T", "lint", "-W", "warning", *map(str, sorted(tmp_path.iterdir()))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert [each for each in done.stdout.splitlines() if "missing date" not in each] == []


@pytest.mark.needs("man", "groff")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_page_says_what_help_says(name: str):
    """Every option with its explanation, the example, and each paragraph."""
    page = shown(PAGES[f"appliance-{name}.1"])
    root = click.Context(main, info_name="appliance", **main.context_settings)
    command = main.get_command(root, name)
    assert command is not None
    context = click.Context(command, info_name=name, parent=root)
    for each in command.get_params(context):
        if record := each.get_help_record(context):
            for part in record:
                assert " ".join(part.split()) in page, part
    for paragraph in (command.help or "").split("\n\n"):
        assert " ".join(paragraph.split()) in page
    assert (command.epilog or "").removeprefix("Example: ") in page
    helped = CliRunner().invoke(main, [name, "--help"]).output
    assert "--help" in helped


@pytest.mark.needs("man", "groff")
def test_the_page_of_the_configuration_has_every_key():
    """With its shape, its default and what it is for; the example is one that `check` accepts."""
    page = shown(PAGES["appliance.yaml.5"])
    for section in key_sections():
        assert section.heading in page
        for row in section.rows:
            assert row.key in page
            assert row.about in page, row
            assert f"default {row.default.strip('`')})" in page or not row.default, row
    assert load(EXAMPLE.encode(), source="EXAMPLE", number=1).problems == ()


def test_they_are_written_where_man_looks(tmp_path: Path):
    """Below man1 and man5 of the directory."""
    subprocess.run([sys.executable, "-m", "appliance.console.manual", str(tmp_path)], check=True)
    written = {each.name: each.parent.name for each in tmp_path.glob("*/*")}
    assert written == {name: f"man{name[-1]}" for name in PAGES}


def test_what_roff_would_obey():
    """A request at the beginning of a line, escapes, quotes."""
    assert line(".TH x") == "\\&.TH x"
    assert escaped("a\\n-b'`") == "a\\en\\-b\\(aq\\(ga"
    assert quoted('say "a"') == '"say \\(dqa\\(dq"'
