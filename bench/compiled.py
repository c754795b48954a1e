"""Our package with the modules that have a `.pxd` compiled, as a wheel or an image may ship it."""

import shutil
import subprocess
import sys
from pathlib import Path

_PACKAGE = Path(__file__).parent.parent / "appliance"


def build(directory: Path) -> None:
    """Copy the package `appliance` into `directory` and compile it there; it needs a C compiler."""
    copy = directory / _PACKAGE.name
    shutil.copytree(_PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "*.so", "*.c"))
    modules = sorted({_source(each).relative_to(directory) for each in copy.rglob("*.p[xy][dx]")})
    # Annotations are mypy's: `int` would be a Python integer for Cython, and types are in the `.pxd`.
    command = [Path(sys.executable).parent / "cythonize", "-i", "-3", "-X", "annotation_typing=False"]
    done = subprocess.run(
        [*command, *map(str, modules)], cwd=directory, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _source(types: Path) -> Path:
    """Return what is compiled: a `.pyx` where there is one, else the plain module."""
    twin = types.with_suffix(".pyx")
    return twin if twin.exists() else types.with_suffix(".py")
