"""What the HTTP server says of bad requests, as log lines of ours, for debugging only."""

from structlog.typing import FilteringBoundLogger


class ErrorLog:
    """A file to write to, as far as pywsgi uses one."""

    def __init__(self, log: FilteringBoundLogger) -> None:
        self._log = log

    def write(self, text: str) -> None:
        """Log a line."""
        if line := text.strip():
            self._log.debug("request-refused", reason=line)

    def flush(self) -> None:
        """Do nothing: each line is written at once."""
