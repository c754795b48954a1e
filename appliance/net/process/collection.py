"""Python's collector of reference cycles, which stands still while much is made that stays."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Iterator[None]:
    """Collect nothing meanwhile: each collection looks through all that was made by then, and finds nothing.

    Of 40,000 servers that is half of the time that it takes to read them.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
