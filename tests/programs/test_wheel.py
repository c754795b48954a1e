"""The wheel: compiled where a compiler is, and plain Python where none is."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.programs


def pip_wheel(source: Path, folder: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Make a wheel of `source` as `pip install` does, with what is installed here."""
    return subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index",
         f"--wheel-dir={folder}", str(source)],
        env={**os.environ, **environment}, cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip


def extensions(wheel: Path) -> dict[str, bytes]:
    """Return the extension modules of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if name.endswith(".so")}


def test_without_a_compiler_it_runs_everywhere(tmp_path: Path):
    """What is installed of our source archive on a machine without a compiler is plain Python."""
    command = [
        Path(sys.executable).with_name("hatchling"),
        "build",
        "--target",
        "sdist",
        "--directory",
        tmp_path,
    ]
    subprocess.run(command, cwd=_ROOT, check=True, capture_output=True)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path, filter="data")
    done = pip_wheel(tmp_path / archive.name.removesuffix(".tar.gz"), tmp_path, CC="no-such-compiler")
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")
    assert extensions(wheel) == {}


def test_who_wants_it_compiled_hears_what_is_missing(tmp_path: Path):
    """LB_COMPILED=yes makes no other wheel, and names the compiler that it has not found."""
    done = pip_wheel(_ROOT, tmp_path, LB_COMPILED="yes", CC="no-such-compiler")
    assert done.returncode != 0
    assert "no C compiler (no-such-compiler)" in done.stdout + done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.needs("cc")
@pytest.mark.skipif(not os.environ.get("E2E_FULL"), reason="make test-full: the data path is compiled twice")
def test_two_compiled_wheels_are_equal(tmp_path: Path):
    """The same sources give the same wheel, whose name says what it runs on."""
    wheels = []
    for name in ("one", "another"):
        (tmp_path / name).mkdir()
        done = pip_wheel(_ROOT, tmp_path / name, LB_COMPILED="yes")
        assert done.returncode == 0, done.stderr
        wheels += (tmp_path / name).glob("*.whl")
    first, second = wheels
    assert first.name == second.name
    assert "none-any" not in first.name
    assert extensions(first)
    assert first.read_bytes() == second.read_bytes()
