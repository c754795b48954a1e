"""The archive of another release: this checkout's with another version, and with changes where given."""

import base64
import hashlib
import io
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import appliance

_OURS = appliance.__version__


def other_release(
    archive: Path,
    version: str,
    folder: Path,
    *,
    changes: Mapping[str, str] | None = None,
    signers: str = "",
) -> Path:
    """Write lb-appliance-VERSION.tar.gz into a folder, and its checksum beside it; return its path.

    `changes` are texts put before modules of the package, by their paths in it; `signers` are the lines of
    its `release-signers`.
    """
    files = _read(archive)
    (old,) = (name for name in files if name.startswith("lb_appliance-"))
    new = old.replace(_OURS, version)
    wheel = _changed(files.pop(old), version, {**(changes or {}), "config/release-signers": signers})
    _, _, locked = files["requirements.txt"].partition(b"\n")
    line = f"lb-appliance=={version} --hash=sha256:{hashlib.sha256(wheel).hexdigest()}\n"
    files |= {new: wheel, "requirements.txt": line.encode() + locked}
    made = folder / f"lb-appliance-{version}.tar.gz"
    with tarfile.open(made, "w:gz") as out:
        for name, content in files.items():
            entry = tarfile.TarInfo(f"lb-appliance-{version}/{name}")
            entry.size = len(content)
            entry.mode = 0o755 if name == "install" else 0o644
            out.addfile(entry, io.BytesIO(content))
    digest = hashlib.sha256(made.read_bytes()).hexdigest()
    made.with_name(f"{made.name}.sha256").write_text(f"{digest}  {made.name}\n")
    return made


def _read(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as opened:
        members = [each for each in opened if each.isfile()]
        return {Path(each.name).name: opened.extractfile(each).read() for each in members}  # type: ignore[union-attr]  # all are files


def _changed(wheel: bytes, version: str, changes: Mapping[str, str]) -> bytes:
    with zipfile.ZipFile(io.BytesIO(wheel)) as source:
        files = {each: source.read(each) for each in source.namelist()}
    info = f"lb_appliance-{_OURS}.dist-info"
    for name in (f"{info}/METADATA", "appliance/__init__.py"):
        files[name] = files[name].replace(_OURS.encode(), version.encode(), 1)
    for name, text in changes.items():
        files[f"appliance/{name}"] = text.encode() + files[f"appliance/{name}"]
    files = {name.replace(info, f"lb_appliance-{version}.dist-info"): data for name, data in files.items()}
    record = f"lb_appliance-{version}.dist-info/RECORD"
    del files[record]
    lines = [f"{name},sha256={_digest(data)},{len(data)}" for name, data in files.items()]
    files[record] = "\n".join([*lines, f"{record},,", ""]).encode()
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as out:
        for name, data in files.items():
            out.writestr(name, data)
    return made.getvalue()


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
