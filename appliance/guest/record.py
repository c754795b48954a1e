"""The last properties of a virtual machine, and what was made from them: kept across restarts, for root only.

The OVF environment may not be there at the next start: a hypervisor detaches the ISO, or the tool does not
answer. The digests distinguish a configuration that we wrote from one that a person has edited.
"""

import contextlib
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from appliance.model.guest.placement import Placed
from appliance.net.files import state_files
from appliance.net.files.atomic_write import remove_scratch_files, write_atomically
from appliance.net.files.state_files import FileUnusable

DIRECTORY: Final = Path("var/lib/appliance-guest")


class Record:
    """The record below one root; writing raises OSError, and unreadable data counts as missing."""

    def __init__(self, root: Path) -> None:
        self._directory = root / DIRECTORY

    def environment(self) -> bytes | None:
        """Return the last OVF environment that had properties, None before the first one."""
        with contextlib.suppress(FileUnusable):
            return state_files.read(self._directory / "environment.xml")
        return None

    def keep_environment(self, data: bytes) -> None:
        """Keep an OVF environment for later starts."""
        self._write("environment.xml", data)

    def placed(self) -> Placed | None:
        """Return the configuration written last, None if there is none or the record is lost."""
        return self._read("record.json")

    def intended(self) -> Placed | None:
        """Return the configuration last intended to be written; a power cut may have prevented it."""
        return self._read("intended.json")

    def keep_placed(self, placed: Placed) -> None:
        """Record that a configuration was written."""
        self._write("record.json", msgspec.json.encode(placed))

    def keep_intended(self, placed: Placed) -> None:
        """Record that a configuration is about to be written."""
        self._write("intended.json", msgspec.json.encode(placed))

    def _read(self, name: str) -> Placed | None:
        return state_files.decoded(self._directory / name, Placed)

    def _write(self, name: str, data: bytes) -> None:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._directory / name
        remove_scratch_files(path)
        with contextlib.suppress(FileUnusable):
            if state_files.read(path) == data:
                return
        state_files.clear_way(path)
        write_atomically(path, data)


def digest(data: bytes) -> str:
    """Return the digest of a file's content, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def digest_of(properties: Mapping[str, str]) -> str:
    """Return the digest of properties, independent of their order."""
    return digest(msgspec.json.encode(dict(sorted(properties.items()))))
