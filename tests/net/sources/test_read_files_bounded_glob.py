"""Patterns of paths: what they stand for is what glob(3) says, and none looks through the whole machine."""

import glob
from pathlib import Path

import pytest

from appliance.net.sources import read_files
from appliance.net.sources.read_files import BoundedGlob, ReadFiles, TooManyNamesError

pytestmark = pytest.mark.sockets


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a folder with files, folders, a link and hidden names."""
    for name in ("a.conf", "b.conf", "c.txt", ".d.conf", "x/a.conf", "x/y/b.conf", ".z/a.conf", "[k].conf"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "link").symlink_to("x")
    (tmp_path / "gone.conf").symlink_to("nowhere")
    return tmp_path


@pytest.mark.parametrize(
    "pattern",
    [
        *(
            "*.conf",
            "*/*.conf",
            "?.conf",
            "[ab].conf",
            "[!a].conf",
            ".*",
            "x/*/b.conf",
            "**/*.conf",
            "none/*",
        ),
        *("*", "a.conf", "nothing", "a.conf/*", "*/a.conf", "[[]k].conf", "x//*.conf", "link/*"),
    ],
)
@pytest.mark.parametrize("absolute", [True, False], ids=["absolute", "relative"])
def test_a_pattern_means_what_it_means_everywhere(
    tree: Path,
    monkeypatch: pytest.MonkeyPatch,
    pattern: str,
    absolute: bool,  # noqa: FBT001  # a column of the table
):
    """The same paths as Python's own glob finds, in alphabetical order."""
    monkeypatch.chdir(tree)
    whole = f"{tree}/{pattern}" if absolute else pattern
    wanted = sorted(str(Path(each)) for each in glob.glob(whole))  # noqa: PTH207  # what ours is compared with
    assert [str(Path(each)) for each in BoundedGlob().matching(whole)] == wanted


def test_a_pattern_of_the_whole_machine_is_refused():
    """`include /*/*/*/*/*/*/*/*.conf` has an end, and an error that names it."""
    pattern = "/*/*/*/*/*/*/*/*/*.conf"
    with pytest.raises(OSError, match="looks at more than 20000 names") as refused:
        ReadFiles().matching(pattern)
    assert refused.value.filename == pattern


def test_names_count_that_do_not_match(tree: Path, monkeypatch: pytest.MonkeyPatch):
    """It is the looking that costs."""
    monkeypatch.setattr(read_files, "MOST_NAMES", 8)
    with pytest.raises(TooManyNamesError):
        BoundedGlob().matching(f"{tree}/*.nothing")


def test_a_pattern_that_comes_to_stand_for_too_much_is_a_change(tree: Path, monkeypatch: pytest.MonkeyPatch):
    """Who looks again sees that, and is not stopped by it."""
    files = ReadFiles()
    files.matching(f"{tree}/*.conf")
    monkeypatch.setattr(read_files, "MOST_NAMES", 3)
    assert files.again([]).digest() != files.digest()


def test_patterns_of_one_configuration_share_the_bound(tree: Path, monkeypatch: pytest.MonkeyPatch):
    """Many that are harmless each come to an end, too."""
    monkeypatch.setattr(read_files, "MOST_NAMES", 30)
    files = ReadFiles()
    files.matching(f"{tree}/*.conf")
    files.matching(f"{tree}/*1.conf")
    with pytest.raises(OSError, match="looks at more than 30 names"):
        files.matching(f"{tree}/*2.conf")
