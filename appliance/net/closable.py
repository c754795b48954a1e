"""What holds a descriptor or a mapping: closed at the end of a `with` block."""

from abc import ABC, abstractmethod
from typing import Self


class Closable(ABC):
    """Its `with` block ends with `close`."""

    @abstractmethod
    def close(self) -> None:
        """Free everything; another call is harmless."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
