"""The operator's files, as the reload program looks at them: when it is asked to, and now and then."""

from appliance.core.rollout.unasked_reload import UnaskedReload
from appliance.model.paths import Paths
from appliance.net.sources.read_files import ReadFiles


class WatchedFiles:
    """All files that the configuration is made of, and what of them was judged already."""

    def __init__(self, paths: Paths) -> None:
        self._known = paths.operators_files
        self.judged = ReadFiles()
        """What was read for the last judgement."""
        self._watch = UnaskedReload()

    def read(self) -> ReadFiles:
        """Return what they hold, which is judged now."""
        self.judged = self.judged.again(self._known)
        return self.judged

    def are_as_judged(self) -> bool:
        """Say whether they hold what was judged last."""
        return self.judged.again(self._known).digest() == self.judged.digest()

    def unasked(self) -> ReadFiles | None:
        """Return what they hold where that has not changed since the last look, and was never judged.

        Looked at is what the last judgement has read: it knows which files the others include.
        """
        self._watch.judged(self.judged.digest())
        seen = self.judged.again(self._known)
        if not self._watch.settled(seen.digest()):
            return None
        self.judged = seen
        return seen
