"""The operator's file, as the reload program looks at it: when it is asked to, and now and then."""

import hashlib
from pathlib import Path

from appliance.core.rollout.unasked_reload import UnaskedReload
from appliance.net.files import config_file
from appliance.net.files.state_files import FileUnusable

Content = bytes | FileUnusable
"""What a file holds, or why it cannot be read."""


class WatchedFile:
    """One file, and what of it was judged already."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._watch = UnaskedReload()

    def read(self) -> Content:
        """Return what it holds, which is judged now."""
        content = self._look()
        self._watch.judged(_digest(content))
        return content

    def unasked(self) -> Content | None:
        """Return what the file holds where that has not changed since the last look, and was never judged."""
        content = self._look()
        if not self._watch.settled(_digest(content)):
            return None
        self._watch.judged(_digest(content))
        return content

    def _look(self) -> Content:
        try:
            return config_file.read(self.path)
        except FileUnusable as error:
            return error


def _digest(content: Content) -> str:
    return hashlib.sha256(content).hexdigest() if isinstance(content, bytes) else str(content)
