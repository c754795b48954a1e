"""What identifies a disk and its parts: the same for the same version, so that artefacts can be compared."""

import uuid
from dataclasses import dataclass
from typing import Final

_NAMESPACE: Final = uuid.UUID("6f0c1d4e-9445-5000-8000-6c622d617070")


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Name, version and moment (seconds since 1970) of what is made."""

    name: str
    version: str
    epoch: int

    def uuid(self, part: str) -> str:
        """Return the UUID of a part."""
        return str(uuid.uuid5(_NAMESPACE, f"{self.name} {self.version} {part}"))

    def content_id(self) -> str:
        """Return the eight hexadecimal digits of what is on the disk."""
        return f"{int(self.uuid('content')[:8], 16) & 0xFFFFFFFE:08x}"  # all ones would be "no parent"

    def volume_id(self) -> str:
        """Return the eight hexadecimal digits of the FAT file system."""
        return self.uuid("esp-volume")[:8]
