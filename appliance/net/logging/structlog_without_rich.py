"""structlog, imported without rich.

structlog imports rich where it is installed, for coloured tracebacks that no program prints: an eighth of the
time that a program needs to start. Whoever uses structlog before this module pays for it all the same.
"""

import contextlib
import sys
from collections.abc import Iterator

__all__ = ["EventDict", "FilteringBoundLogger", "structlog"]


@contextlib.contextmanager
def hidden(package: str) -> Iterator[None]:
    """Make imports of a package fail with ImportError: that is what None in `sys.modules` means."""
    known = sys.modules.get(package)
    sys.modules[package] = None  # type: ignore[assignment]  # the type knows of modules only
    try:
        yield
    finally:
        del sys.modules[package]
        if known:
            sys.modules[package] = known


with hidden("rich"):
    import structlog
    from structlog.typing import EventDict, FilteringBoundLogger
