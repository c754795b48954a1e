"""The operator's files as `reload` looks at them, however somebody replaces them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from appliance.model.paths import Paths
from appliance.net.sources.watched_files import WatchedFiles

pytestmark = pytest.mark.sockets

Steps = Iterator[None]
"""A replacement in steps; between two of them somebody looks."""

HALF, WHOLE = b"frontends:\n", b"frontends:\n  api: {}\n"


def renamed_over(file: Path) -> Steps:
    """Write a copy, and move it over the file."""
    copy = file.with_name("copy")
    copy.write_bytes(WHOLE)
    yield
    copy.replace(file)


def written_in_place(file: Path) -> Steps:
    """Empty the file, and write it in two parts."""
    with file.open("wb", buffering=0) as open_file:
        yield
        open_file.write(HALF)
        yield
        open_file.write(WHOLE.removeprefix(HALF))


def swapped(file: Path) -> Steps:
    """Move the link that leads to the folder of all files, as kubelet does; the file itself stays a link."""
    folder = file.parent
    (folder / "..second").mkdir()
    (folder / "..second" / file.name).write_bytes(WHOLE)
    (folder / "..next").symlink_to("..second")
    yield
    (folder / "..next").replace(folder / "..data")
    (folder / "..first" / file.name).unlink()


@pytest.mark.promise("docs/reloading.md", "however a file is replaced, the whole one is obeyed in the end")
@pytest.mark.parametrize("replace", [renamed_over, written_in_place, swapped])
def test_a_replaced_file_is_taken_when_it_is_whole(tmp_path: Path, replace: Callable[[Path], Steps]):
    """What is seen between two writes is nothing to obey, and what is there at the end is."""
    file, first = tmp_path / "appliance.yaml", tmp_path / "..first"
    first.mkdir()
    (first / file.name).write_bytes(b"{}")
    (tmp_path / "..data").symlink_to(first.name)
    if replace is swapped:
        file.symlink_to(f"..data/{file.name}")
    else:
        file.write_bytes(b"{}")
    watched = WatchedFiles(Paths(runtime=tmp_path, state=tmp_path, config=file))
    watched.read()
    seen = [watched.unasked() for _ in replace(file)]
    seen += [watched.unasked() for _ in range(3)]
    assert [None if each is None else each.content(file) for each in seen if each] == [WHOLE]
    assert not any(seen[:-2])
