"""What `podman save --format docker-archive` writes, made the same for the same layers.

podman 4.3 puts the random name of the build's own container into the image's description, in Docker's format,
which has the health check. Without it the description, and so the image's id, are the same for a commit. Left
out are also the names of Docker before 1.10, which say nothing that manifest.json does not.
"""

import gzip
import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import IO, Final

_MANIFEST: Final = "manifest.json"
_OF_ONE_BUILD: Final = ("container", "container_config", "parent")


class SavedImageError(Exception):
    """The archive is not one image as podman saves it."""


def write(saved: Path) -> Path:
    """Write SAVED.gz and return its path; raises SavedImageError."""
    made = saved.with_name(f"{saved.name}.gz")
    try:
        with (
            tarfile.open(saved) as source,
            made.open("wb") as file,
            gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w|", format=tarfile.USTAR_FORMAT) as target,
        ):
            (image,) = json.load(_content(source, _MANIFEST))
            described = _description(_content(source, image["Config"]).read())
            name = f"{hashlib.sha256(described).hexdigest()}.json"
            _add(target, _MANIFEST, _json([{**image, "Config": name}]))
            _add(target, name, described)
            for layer in image["Layers"]:
                target.addfile(_entry(layer, source.getmember(layer).size), _content(source, layer))
    except (tarfile.TarError, KeyError, TypeError, ValueError) as error:
        raise SavedImageError(f"{saved}: no image as podman saves it: {error!r}") from error
    return made


def _description(text: bytes) -> bytes:
    """Return the description of the image without what is of one build only."""
    found = {key: value for key, value in json.loads(text).items() if key not in _OF_ONE_BUILD}
    found["config"]["Hostname"] = ""
    return _json(found)


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _content(source: tarfile.TarFile, name: str) -> IO[bytes]:
    found = source.extractfile(name)
    if found is None:
        raise SavedImageError(f"{name} is no file")
    return found


def _add(target: tarfile.TarFile, name: str, content: bytes) -> None:
    target.addfile(_entry(name, len(content)), io.BytesIO(content))


def _entry(name: str, size: int) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.size, made.mode = size, 0o644
    return made
