"""The operator's files, as the reload program reads them: on request, and periodically."""

from appliance.core.rollout.reload_retries import UnaskedReload
from appliance.model.paths import Paths
from appliance.net.sources.read_files import ReadFiles


class WatchedFiles:
    """All files of the configuration, and which of their contents were already judged."""

    def __init__(self, paths: Paths) -> None:
        self._known = paths.operators_files
        self.judged = ReadFiles()
        """The files read for the last judgement."""
        self._watch = UnaskedReload()

    def read(self) -> ReadFiles:
        """Return the contents, which are to be judged now."""
        self.judged = self.judged.again(self._known)
        return self.judged

    def are_as_judged(self) -> bool:
        """Return whether the contents are those judged last."""
        return self.judged.again(self._known).digest() == self.judged.digest()

    def unasked(self) -> ReadFiles | None:
        """Return the contents if unchanged since the last read, and never judged.

        It reads the files of the last judgement, which include those included by others.
        """
        self._watch.judged(self.judged.digest())
        seen = self.judged.again(self._known)
        if not self._watch.settled(seen.digest()):
            return None
        self.judged = seen
        return seen
