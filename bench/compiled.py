"""Our package with the data path compiled, as wheel and image ship it."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

_ROOT = Path(__file__).parent.parent


def build(directory: Path) -> None:
    """Make a compiled wheel and unpack it into `directory`; it needs a C compiler."""
    wheel = ["pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run(
        [sys.executable, "-m", *wheel, f"--wheel-dir={directory}", str(_ROOT)],
        env={**os.environ, "LB_COMPILED": "yes"},
        check=True,
    )
    (made,) = directory.glob("*.whl")
    with zipfile.ZipFile(made) as archive:
        archive.extractall(directory)
