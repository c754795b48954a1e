"""Compiles the data path while a wheel is made: modules that have a `.pxd` become extension modules.

Hatchling calls it. `LB_COMPILED=yes` fails where it cannot be done, `LB_COMPILED=no` leaves it out. Without
either a machine with a C compiler and Python's headers compiles, and another one makes the wheel that runs
everywhere. `CC` and `LB_PYTHON_HEADERS` name another compiler and the headers that go with it, and then
`LB_PLATFORM` says what it compiles for: `linux_aarch64`.

With `LB_MANYLINUX=yes` the wheel's name says which systems it runs on: `manylinux_2_17_x86_64` is any with
glibc 2.17 or newer (PEP 600). The symbols that the modules ask for tell that; readelf, which comes with
compilers, shows them.

The same sources give the same bytes: nothing of what is made names the folder that it was made in.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_CYTHON = [
    *(sys.executable, "-m", "cython", "-3", "-I", "."),
    # Annotations are mypy's: `int` would be a Python integer for Cython, and types are in the `.pxd`.
    *("-X", "annotation_typing=False"),
]
# Debug symbols would name the folder, and be the larger part of the file.
# Every Linux with glibc has these, with all that their symbols' versions promise (PEP 600).
_EVERYWHERE = frozenset(
    {"libc.so.6", "libm.so.6", "libpthread.so.0", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
)
_LEAST_GLIBC = (2, 17)
_CFLAGS = ["-shared", "-fPIC", "-O2", "-fwrapv", "-DNDEBUG", "-g0", "-s"]


class CompileError(Exception):
    """The data path could not be compiled."""


class DataPathHook(BuildHookInterface):  # type: ignore[type-arg]  # hatchling's own configuration, which we have none of
    """Adds the extension modules to a wheel, and says in its name what it runs on."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, unless this is for a checkout, which runs its sources."""
        wanted = os.environ.get("LB_COMPILED", "")
        if version == "editable" or wanted == "no":
            return
        self._folder = Path(tempfile.mkdtemp(prefix="lb-compiled-"))
        try:
            made = compile_modules(Path(self.root), self._folder)
        except CompileError as error:
            if wanted == "yes":
                raise
            self.app.display_warning(f"the data path is not compiled: {error}")
            return
        build_data["force_include"].update({str(path): str(place) for path, place in made.items()})
        build_data["pure_python"] = False
        platform = manylinux(made) if os.environ.get("LB_MANYLINUX") == "yes" else _platform()
        build_data["tag"] = f"{_python()}-{_python()}-{platform}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was made: it is in the wheel."""
        del version, build_data, artifact_path
        if hasattr(self, "_folder"):
            shutil.rmtree(self._folder)


def compile_modules(root: Path, folder: Path) -> dict[Path, Path]:
    """Compile into `folder`; return each file with its place in the package. Raises CompileError."""
    command = compiler()
    sources = sorted({_source(each).relative_to(root) for each in (root / "appliance").rglob("*.p[xy][dx]")})
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        extensions = list(pool.map(lambda source: _compile(command, root, folder, source), sources))
    return {made: source.parent / made.name for made, source in zip(extensions, sources, strict=True)}


def compiler() -> list[str]:
    """Return the command that makes an extension of a C file; raises CompileError where it cannot work."""
    command = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    if shutil.which(command[0]) is None:
        raise CompileError(f"no C compiler ({command[0]})")
    given = os.environ.get("LB_PYTHON_HEADERS")
    headers = [given] if given else [sysconfig.get_path("include"), sysconfig.get_path("platinclude")]
    if not any((Path(each) / "Python.h").exists() for each in headers):
        raise CompileError(f"no Python.h in {headers[0]} (Debian: python3-dev)")
    return [*command, *_CFLAGS, *(f"-I{each}" for each in dict.fromkeys(headers))]


def manylinux(modules: Iterable[Path]) -> str:
    """Return the platform that all of these modules run on; raises CompileError where it has no such name."""
    asked = [_readelf(module) for module in modules]
    needed = {name for text in asked for name in re.findall(r"\(NEEDED\).*\[(.+)\]", text)}
    if foreign := needed - _EVERYWHERE:
        raise CompileError(f"not every Linux has {', '.join(sorted(foreign))}: no manylinux wheel")
    found = [(int(x), int(y)) for text in asked for x, y in re.findall(r"Name: GLIBC_(\d+)\.(\d+)", text)]
    major, minor = max([_LEAST_GLIBC, *found])
    return f"manylinux_{major}_{minor}_{_machine()}"


def _readelf(module: Path) -> str:
    command = ["readelf", "--wide", "--dynamic", "--version-info", str(module)]
    if shutil.which(command[0]) is None:
        raise CompileError("no readelf (Debian: binutils)")
    return _run(command, module.parent)


def _source(types: Path) -> Path:
    """Return what is compiled: a `.pyx` where there is one, else the plain module."""
    twin = types.with_suffix(".pyx")
    return twin if twin.exists() else types.with_suffix(".py")


def _compile(command: list[str], root: Path, folder: Path, source: Path) -> Path:
    code = folder / f"{source.stem}.c"
    made = folder / f"{source.stem}{_suffix()}"
    _run([*_CYTHON, "-o", str(code), str(source)], root)
    _run([*command, "-o", made.name, code.name], folder)
    return made


def _run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603  # a build
    if done.returncode:
        raise CompileError(f"{shlex.join(command)}:\n{done.stdout}{done.stderr}")
    return done.stdout


def _platform() -> str:
    return os.environ.get("LB_PLATFORM") or sysconfig.get_platform().replace("-", "_")


def _python() -> str:
    return f"cp{sys.version_info.major}{sys.version_info.minor}"


def _suffix() -> str:
    return f".{sys.implementation.cache_tag}-{_machine()}-linux-gnu.so"


def _machine() -> str:
    return _platform().removeprefix("linux_")
