"""The wheel: compiled where a compiler is, and plain Python where none is."""

import importlib
import os
import platform
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(_ROOT))

hatch_build = importlib.import_module("hatch_build")

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


@pytest.mark.promise("data path", "without a compiler the wheel is plain Python")
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


@pytest.mark.slow("builds or measures")
def test_who_wants_it_compiled_hears_what_is_missing(tmp_path: Path):
    """LB_COMPILED=yes makes no other wheel, and names the compiler that it has not found."""
    done = pip_wheel(_ROOT, tmp_path, LB_COMPILED="yes", CC="no-such-compiler")
    assert done.returncode != 0
    assert "no C compiler (no-such-compiler)" in done.stdout + done.stderr
    assert not list(tmp_path.iterdir())


def module(folder: Path, code: str, *options: str) -> Path:
    """Compile a module of a function's body."""
    source = folder / "module.c"
    source.write_text(f"int made(void) {{ {code} }}\n")
    made = source.with_suffix(".so")
    subprocess.run(["cc", "-shared", "-fPIC", *options, "-o", made, source], check=True)
    return made


@pytest.mark.slow("builds or measures")
@pytest.mark.needs("cc", "readelf")
def test_manylinux_is_the_newest_glibc_that_is_asked_for(tmp_path: Path):
    """It is 2.17 at least: what asks for less is called by that all the same."""
    machine = platform.machine()
    nothing = module(tmp_path, "return 1;")
    assert hatch_build.manylinux([nothing]) == f"manylinux_2_17_{machine}"
    newer = module(tmp_path, "extern char __libc_single_threaded; return __libc_single_threaded;")
    assert hatch_build.manylinux([newer]) == f"manylinux_2_32_{machine}"


@pytest.mark.slow("builds or measures")
@pytest.mark.needs("cc", "readelf")
def test_a_library_that_not_every_linux_has_makes_no_manylinux(tmp_path: Path):
    """It is named."""
    library = module(tmp_path, "return 1;").rename(tmp_path / "libforeign.so")
    user = module(tmp_path, "return 2;", "-Wl,--no-as-needed", f"-L{tmp_path}", "-lforeign")
    with pytest.raises(hatch_build.CompileError, match=library.name):
        hatch_build.manylinux([user])


@pytest.mark.slow("builds or measures")
@pytest.mark.needs("cc")
@pytest.mark.skipif(not os.environ.get("E2E_FULL"), reason="make test-full: the data path is compiled twice")
def test_two_compiled_wheels_are_equal(tmp_path: Path):
    """The same sources give the same wheel, whose name says what it runs on."""
    wheels = []
    for name in ("one", "another"):
        (tmp_path / name).mkdir()
        done = pip_wheel(_ROOT, tmp_path / name, LB_COMPILED="yes", LB_MANYLINUX="yes")
        assert done.returncode == 0, done.stderr
        wheels += (tmp_path / name).glob("*.whl")
    first, second = wheels
    assert first.name == second.name
    assert first.name.endswith(f"-manylinux_2_17_{platform.machine()}.whl")
    assert extensions(first)
    assert first.read_bytes() == second.read_bytes()
