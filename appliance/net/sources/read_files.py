"""The contents of files at one moment, so that everything derived from them is of that moment.

The files to read depend on the content of others (`include` of keepalived), so each is read on first use, and
remembered. They are the operator's, who may make them unreadable for all: only for them may `reload` read
what its user may not.
"""

import contextlib
import errno
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from glob import has_magic
from pathlib import Path
from typing import Final

from appliance.model.capability import Capability
from appliance.net.files import config_file, state_files
from appliance.net.files.state_files import FileUnusable
from appliance.net.privileges import capabilities

MOST_NAMES: Final = 20_000
"""Most names that the patterns of one configuration may match against, in all folders together."""


class TooManyNamesError(Exception):
    """A pattern exceeds the rest of this limit; none of its names is used."""


class BoundedGlob:
    """The patterns of one configuration."""

    def __init__(self) -> None:
        self._left = MOST_NAMES

    def matching(self, pattern: str) -> tuple[str, ...]:
        """Return the paths that match a pattern, in alphabetical order; raises TooManyNamesError."""
        found = ["/" if pattern.startswith("/") else ""]
        for part in filter(None, pattern.split("/")):
            found = [path for folder in found for path in self._matches(folder, part)]
        return tuple(sorted(found))

    def _matches(self, folder: str, part: str) -> Iterator[str]:
        """Yield the paths in a folder that match a part of a pattern, none if it cannot be read."""
        self._spend()
        if not has_magic(part):
            path = os.path.join(folder, part)  # noqa: PTH118  # a text, as patterns are
            if os.path.lexists(path):
                yield path
            return
        try:
            with os.scandir(folder or ".") as entries:
                for each in entries:
                    self._spend()
                    # glob(3): a leading dot must be matched explicitly.
                    if fnmatchcase(each.name, part) and (part[0] == "." or each.name[0] != "."):
                        yield os.path.join(folder, each.name)  # noqa: PTH118  # as above
        except OSError:
            return

    def _spend(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise TooManyNamesError(f"looks at more than {MOST_NAMES} names")


MOST_FILES: Final = 500
"""Most files and patterns that one configuration may consist of."""

Content = bytes | FileUnusable
"""The content of a file, or why it cannot be read."""


_TOO_MANY: Final = f"is one of more than {MOST_FILES} files"


class FileMissing(FileUnusable):
    """The path does not exist."""


class ReadFiles:
    """Files by path, each read once; `given` are contents from elsewhere."""

    def __init__(self, given: Mapping[str, Content] | None = None) -> None:
        self._contents: dict[str, Content] = dict(given or {})
        self._matches: dict[str, tuple[str, ...]] = {}
        self._glob = BoundedGlob()
        self._size = 0

    def content(self, path: Path | str) -> Content:
        """Return the content of a file as of its first use."""
        name = str(path)
        if name in self._contents:
            return self._contents[name]
        if self._is_full():
            return FileUnusable(_TOO_MANY)
        found = self._contents[name] = self._read(name)
        return found

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files that could be read so far."""
        return tuple(Path(name) for name, found in self._contents.items() if isinstance(found, bytes))

    def read(self, path: str) -> bytes:
        """Return the same content as `content`; raises OSError."""
        found = self.content(path)
        if isinstance(found, bytes):
            return found
        raise OSError(errno.ENOENT if isinstance(found, FileMissing) else errno.EIO, str(found), path)

    def matching(self, pattern: str) -> tuple[str, ...]:
        """Return the paths that matched a glob pattern, in alphabetical order; raises OSError."""
        if pattern not in self._matches:
            if self._is_full():
                raise OSError(errno.EMFILE, _TOO_MANY, pattern)
            try:
                with capabilities.taken_up(Capability.CAP_DAC_READ_SEARCH):
                    self._matches[pattern] = self._glob.matching(pattern)[: MOST_FILES + 1]
            except TooManyNamesError as error:
                raise OSError(errno.E2BIG, str(error), pattern) from error
        return self._matches[pattern]

    def again(self, paths: Iterable[Path]) -> "ReadFiles":
        """Read the same files and patterns again, and `paths`; return the result."""
        fresh = ReadFiles()
        for path in (*map(str, paths), *self._contents):
            fresh.content(path)
        for pattern in self._matches:
            with contextlib.suppress(OSError):  # it matches too much now: that is a change
                fresh.matching(pattern)
        return fresh

    def digest(self) -> str:
        """Return a text that differs if any content does."""
        found = hashlib.sha256()
        for path, content in sorted(self._contents.items()):
            said = content if isinstance(content, bytes) else str(content).encode()
            found.update(repr((path, hashlib.sha256(said).hexdigest())).encode())
        found.update(repr(sorted(self._matches.items())).encode())
        return found.hexdigest()

    def sum(self) -> str:
        """Return the SHA-256 of all contents one after another: for one file that of `sha256sum`."""
        contents = (each for each in self._contents.values() if isinstance(each, bytes))
        return hashlib.sha256(b"".join(contents)).hexdigest()

    def _read(self, path: str) -> Content:
        try:
            with capabilities.taken_up(Capability.CAP_DAC_READ_SEARCH):
                content = state_files.read(Path(path), limit=config_file.LIMIT)
        except FileUnusable as error:
            return error
        if content is None:
            return FileMissing(os.strerror(errno.ENOENT))
        self._size += len(content)
        if self._size > config_file.LIMIT:
            return FileUnusable(f"is more than {config_file.LIMIT} bytes, with the files before it")
        return content

    def _is_full(self) -> bool:
        return len(self._contents) + len(self._matches) >= MOST_FILES
