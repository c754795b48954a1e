"""The folders of releases: which one starts, which one is the way back, and what is removed."""

from pathlib import Path

import pytest

from appliance.net.releases.release_folders import ReleaseFolders

pytestmark = pytest.mark.sockets


def _with(place: Path, *names: str) -> ReleaseFolders:
    folders = ReleaseFolders(place)
    for name in names:
        folders.command(name).parent.mkdir(parents=True)
        folders.command(name).touch()
    return folders


def test_each_choice_keeps_the_way_back(tmp_path: Path):
    """The release that was chosen before is the former one; going back is a choice like any other."""
    folders = _with(tmp_path, "lb-appliance-1", "lb-appliance-2")
    assert (folders.current, folders.former) == (None, None)
    folders.choose("lb-appliance-1")
    assert (folders.current, folders.former) == ("lb-appliance-1", None)
    folders.choose("lb-appliance-2")
    assert (folders.current, folders.former) == ("lb-appliance-2", "lb-appliance-1")
    folders.choose("lb-appliance-1")
    assert (folders.current, folders.former) == ("lb-appliance-1", "lb-appliance-2")
    assert (tmp_path / "appliance/bin/appliance").samefile(folders.command("lb-appliance-1"))


def test_what_is_prepared_counts_when_it_is_chosen(tmp_path: Path):
    """Until then it changes nothing, and can be withdrawn; another choice takes its place."""
    folders = _with(tmp_path, "lb-appliance-1", "lb-appliance-2", "lb-appliance-3")
    folders.choose("lb-appliance-1")
    before = sorted(tmp_path.iterdir())
    folders.prepare("lb-appliance-2")
    assert (folders.current, folders.former) == ("lb-appliance-1", None)
    folders.withdraw()
    assert sorted(tmp_path.iterdir()) == before
    folders.prepare("lb-appliance-2")
    folders.choose("lb-appliance-3")
    assert (folders.current, folders.former) == ("lb-appliance-3", "lb-appliance-1")


def test_others_are_removed(tmp_path: Path):
    """All but the two go, and nothing that is not ours."""
    folders = _with(tmp_path, "lb-appliance-1", "lb-appliance-2", "lb-appliance-3", "other")
    folders.choose("lb-appliance-2")
    folders.choose("lb-appliance-3")
    assert folders.remove_others() == ("lb-appliance-1",)
    assert {each.name for each in tmp_path.iterdir()} == {
        "appliance", "appliance.former", "lb-appliance-2", "lb-appliance-3", "other",
    }  # fmt: skip


def test_a_former_one_that_was_removed_is_none(tmp_path: Path):
    """There is no way back to a folder that is gone."""
    folders = _with(tmp_path, "lb-appliance-2")
    folders.choose("lb-appliance-1")
    folders.choose("lb-appliance-2")
    assert folders.former is None


def test_an_installation_of_another_kind(tmp_path: Path):
    """Where the place is a folder, or a link to elsewhere, no release is current."""
    (tmp_path / "appliance").mkdir()
    assert ReleaseFolders(tmp_path).current is None
    (tmp_path / "appliance").rmdir()
    (tmp_path / "appliance").symlink_to("/srv/appliance/lb-appliance-1")
    assert ReleaseFolders(tmp_path).current is None
