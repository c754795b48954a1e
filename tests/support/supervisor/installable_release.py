"""An archive as `make dist` makes it, of a release that is small: it stands on this checkout's libraries."""

import base64
import hashlib
import io
import site
import zipfile
from pathlib import Path
from typing import Final

from support.supervisor.release import Release
from support.supervisor.releases import archive, compressed

_SCRIPT: Final = """\
#!python
import os, sys
{before}
sys.path[:0] = {paths!r}
os.environ["PYTHONPATH"] = {joined!r}
from appliance.console.__main__ import run
run()
"""


def installable(release: Release, folder: Path, *, before: str = "", padding: int = 0) -> Path:
    """Write an archive of a release into a folder; `before` is what its command does first, in Python.

    `padding` are bytes of the archive that say nothing, and take no room before they are unpacked.
    """
    wheel = _wheel(release.version, _script(release, before))
    digest = hashlib.sha256(wheel).hexdigest()
    files = {
        f"lb_appliance-{release.version}-py3-none-any.whl": wheel,
        "requirements.txt": f"lb-appliance=={release.version} --hash=sha256:{digest}\n".encode(),
        "padding": bytes(padding),
    }
    made = folder / f"lb-appliance-{release.version}.tar.gz"
    made.write_bytes(compressed(archive(files, name=f"lb-appliance-{release.version}")))
    return made


def put_in_place(release: Release, place: Path) -> None:
    """Have a release be the one that starts, as if it had been installed there."""
    name = f"lb-appliance-{release.version}"
    command = place / name / "bin" / "appliance"
    command.parent.mkdir(parents=True)
    command.symlink_to(release.script())
    (place / "appliance").symlink_to(name)


def _script(release: Release, before: str) -> str:
    paths = [str(release.root), *site.getsitepackages()]
    return _SCRIPT.format(before=before, paths=paths, joined=":".join(paths))


def _wheel(version: str, script: str) -> bytes:
    info = f"lb_appliance-{version}.dist-info"
    files = {
        f"lb_appliance-{version}.data/scripts/appliance": script,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: lb-appliance\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    lines = [f"{name},sha256={_digest(text.encode())},{len(text)}" for name, text in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*lines, f"{info}/RECORD,,", ""])
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as out:
        for name, text in files.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = 0o100755 << 16  # pip makes executable what is so here
            out.writestr(entry, text)
    return made.getvalue()


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
