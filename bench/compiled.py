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
    modules = [str(each.with_suffix(".py").relative_to(directory)) for each in sorted(copy.rglob("*.pxd"))]
    cythonize = Path(sys.executable).parent / "cythonize"
    done = subprocess.run(
        [cythonize, "-i", "-3", *modules], cwd=directory, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
