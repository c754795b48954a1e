"""structlog, imported without rich, colorama and asyncio.

It imports the first two for colours that no program prints, if they are installed, and asyncio for methods
that no program calls: together a fifth of a program's starting time, and 4 MB of its memory. Importing
structlog before this module still costs them.
"""

import contextlib
import sys
from collections.abc import Iterator
from types import ModuleType

__all__ = ["EventDict", "FilteringBoundLogger", "structlog"]


@contextlib.contextmanager
def hidden(package: str, instead: ModuleType | None = None) -> Iterator[None]:
    """Make imports of a package return another module, or fail with ImportError for None."""
    known = sys.modules.get(package)
    sys.modules[package] = instead  # type: ignore[assignment]  # the type knows of modules only
    try:
        yield
    finally:
        del sys.modules[package]
        if known:
            sys.modules[package] = known


with hidden("rich"), hidden("colorama"), hidden("asyncio", ModuleType("asyncio")):
    import structlog
    from structlog.typing import EventDict, FilteringBoundLogger
