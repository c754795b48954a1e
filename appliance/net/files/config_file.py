"""The operator's configuration file as bytes, read without waiting and within a limit."""

import errno
import os
from pathlib import Path
from typing import Final

from appliance.net.files import state_files
from appliance.net.files.state_files import FileUnusable

LIMIT: Final = 8 << 20
"""Longest configuration that is read, bytes."""


def read(path: Path) -> bytes:
    """Return the content of a regular file; raises FileUnusable, with the reason but without the name."""
    content = state_files.read(path, limit=LIMIT)
    if content is None:
        raise FileUnusable(os.strerror(errno.ENOENT))
    return content
