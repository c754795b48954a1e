"""structlog, imported without rich.

If rich is installed, structlog imports it for coloured tracebacks that no program prints: an eighth of a
program's starting time. Importing structlog before this module still costs it.
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
