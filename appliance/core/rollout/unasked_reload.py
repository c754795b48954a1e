"""Whether to reload a changed file without a request: the line `reload` may have been lost.

A client that keeps its connection open learns of a restart only when it writes into the broken pipe; it
reconnects, finds its file unchanged and sends nothing (OpenShift's monitor does so). So the file is read now
and then. Content found twice in a row is complete, and content judged once is not judged again: an error in
it is reported once, and its correction is different content.
"""


class UnaskedReload:
    """Stores contents by their digests, and what cannot be read by the reason."""

    def __init__(self) -> None:
        self._seen: str | None = None
        self._judged: str | None = None

    def judged(self, digest: str) -> None:
        """Remember the content that a reload has accepted or refused, by its digest."""
        self._judged = digest

    def settled(self, digest: str) -> bool:
        """Return whether the present content is that of the last look, and was never judged."""
        before, self._seen = self._seen, digest
        return digest == before and digest != self._judged
