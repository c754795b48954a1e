"""A file on standard input, read whole, within a size limit and a time limit."""

import os
import select
from typing import Final

from appliance.net.files import config_file
from appliance.net.files.state_files import FileUnusable

PATIENCE: Final = 60.0
"""Seconds to wait for the next bytes."""

_CHUNK: Final = 1 << 16


def read_standard_input(
    *, descriptor: int = 0, limit: int = config_file.LIMIT, patience: float = PATIENCE
) -> bytes:
    """Return all bytes up to the end; raises FileUnusable for a terminal, too many, silence, or an error."""
    if os.isatty(descriptor):
        raise FileUnusable("is a terminal: give it a file, as in `appliance check - < appliance.yaml`")
    content = bytearray()
    try:
        while chunk := _next(descriptor, patience):
            content += chunk
            if len(content) > limit:
                raise FileUnusable(f"is more than {limit} bytes")
    except OSError as error:
        raise FileUnusable(error.strerror or str(error)) from error
    return bytes(content)


def _next(descriptor: int, patience: float) -> bytes:
    ready, _, _ = select.select([descriptor], [], [], patience)
    if not ready:
        raise FileUnusable(f"nothing came for {patience:g} s")
    return os.read(descriptor, _CHUNK)
