"""haproxy.cfg in tests: what a text becomes, with short ways to look at it."""

import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass

from appliance.model.config.configuration import Config
from appliance.model.config.frontends import FrontendSection
from appliance.model.config.pools import PoolSection
from appliance.model.document.tree import Plain, plain
from appliance.translation.haproxy.reader import translate
from appliance.translation.translation import HttpSections, LineOutcome, Outcome, Translation

TIMES = "defaults\n  timeout connect 10s\n  timeout client 1m\n  timeout server 1m\n"
"""What stands before the sections that a test is about, so that nothing is said of missing times."""


class Files:
    """Files by their paths; any other is missing."""

    def __init__(self, contents: Mapping[str, bytes]) -> None:
        self._contents = contents

    def __call__(self, path: str) -> bytes:
        """Return what a file holds; raises OSError."""
        if path not in self._contents:
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return self._contents[path]


NO_FILES = Files({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A text that was translated, and the translation."""

    text: str
    found: Translation

    @property
    def config(self) -> Config:
        """The configuration that came out."""
        return Config.model_validate(plain(self.found.root))

    @property
    def tree(self) -> Plain:
        """The same as plain values: only what the file says."""
        return plain(self.found.root)

    def pool(self, name: str = "b") -> PoolSection:
        """Return a pool."""
        return self.config.pools[name]

    def frontend(self, name: str = "f") -> FrontendSection:
        """Return a frontend of either group."""
        groups = (self.config.api, self.config.ingress)
        return next(each.frontends[name] for each in groups if each and name in each.frontends)

    def lines(self, words: str) -> list[LineOutcome]:
        """Return what became of the lines that begin with some words."""
        return [each for each in self.found.lines if each.text.startswith(words)]

    def line(self, words: str) -> LineOutcome:
        """Return what became of the one line that begins with some words."""
        [found] = self.lines(words)
        return found

    def outcome(self, words: str) -> Outcome:
        """Return only the outcome."""
        return self.line(words).outcome

    @property
    def refused(self) -> list[str]:
        """What was refused, as `line:column: reason`."""
        return [f"{each.place.line}:{each.place.column}: {each.reason}" for each in self.found.refused]

    @property
    def proposals(self) -> list[str]:
        """Names of the proposals."""
        return [each.name for each in self.found.proposals]


def read(
    text: str,
    *,
    files: Mapping[str, bytes] | None = None,
    http: HttpSections = "refuse",
    **environment: str,
) -> Read:
    """Return what a text becomes, which may name some files; a last line break is added."""
    whole = text if text.endswith("\n") else f"{text}\n"
    given = Files(files or {})
    found = translate(whole, source="haproxy.cfg", environment=environment, read=given, http=http)
    return Read(text=whole, found=found)


def backend(*lines: str, server: str = "server s 10.0.0.1:6443 check") -> Read:
    """Return what a backend `b` with these lines becomes, with a frontend `f` before it."""
    body = "".join(f"  {each}\n" for each in (*lines, server) if each)
    return read(f"{TIMES}frontend f\n  bind *:6443\n  default_backend b\nbackend b\n{body}")


def frontend(*lines: str, bind: str = "bind *:6443", files: Mapping[str, bytes] | None = None) -> Read:
    """Return what a frontend `f` with these lines becomes, with a backend `b` behind it."""
    body = "".join(f"  {each}\n" for each in (bind, *lines, "default_backend b") if each)
    return read(f"{TIMES}frontend f\n{body}backend b\n  server s 10.0.0.1:6443 check\n", files=files)
