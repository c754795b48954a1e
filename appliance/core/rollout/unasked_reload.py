"""Whether a file that changed is to be reloaded though nobody asked: the line `reload` may have been lost.

A client that holds its connection learns of a restart only when it writes into the broken pipe; it connects
again, finds its file unchanged and says nothing (OpenShift's monitor does). So the file is looked at now and
then. What is found twice in a row is whole, and what was judged once is not judged again: an error in it is
told once, and its correction is another content.
"""


class UnaskedReload:
    """Knows contents by their digests, and what cannot be read by the reason."""

    def __init__(self) -> None:
        self._seen: str | None = None
        self._judged: str | None = None

    def judged(self, digest: str) -> None:
        """Remember the content that a reload has accepted or refused, by its digest."""
        self._judged = digest

    def settled(self, digest: str) -> bool:
        """Say whether the content that is there now was there at the last look, and was never judged."""
        before, self._seen = self._seen, digest
        return digest == before and digest != self._judged
