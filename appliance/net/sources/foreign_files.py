"""haproxy.cfg, keepalived.conf, frr-peers.json, read and translated: which, and which could not be read."""

import glob
import os
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import starmap
from pathlib import Path
from typing import Final

from appliance.model.document.document import read
from appliance.model.document.tree import DocumentError, Node
from appliance.model.loading.loading import unreadable
from appliance.model.messages.problems import Problem
from appliance.net.files.state_files import FileUnusable
from appliance.net.process.this_node import this_node
from appliance.net.sources.read_files import Content, ReadFiles
from appliance.translation.translation import HttpSections, Translation

GROUPS: Final = ("api", "ingress")
"""The groups of frontends; the program of each is `proxy-` and its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignFiles:
    """The files used with our YAML; those of HAProxy may be directories, as for its `-f`.

    `http` is the treatment of HAProxy's sections that read HTTP.
    """

    haproxy: tuple[Path, ...] = ()
    keepalived: Path | None = None
    bgp_peers: Path | None = None
    http: HttpSections = "refuse"

    @property
    def paths(self) -> tuple[Path, ...]:
        """The existing files."""
        return (*self.haproxy, *filter(None, (self.keepalived, self.bgp_peers)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Translated:
    """The result of the files; `problems` are of empty or unreadable ones."""

    translations: tuple[Translation, ...] = ()
    problems: tuple[Problem, ...] = ()


def translated(foreign: ForeignFiles, files: ReadFiles, *, groups: Iterable[str] = ()) -> Translated:
    """Return the files translated to our configuration.

    `groups` are those of our own YAML: a check in keepalived.conf for an HAProxy process checks the programs
    of all groups.
    """
    haproxy = _haproxy(foreign, files) if foreign.haproxy else Translated()
    named = {*groups, *(name for each in haproxy.translations for name in _keys(each.root))}
    programs = [f"proxy-{name}" for name in GROUPS if name in named]
    keepalived = _keepalived(foreign.keepalived, files, programs) if foreign.keepalived else Translated()
    peers = _bgp_peers(foreign.bgp_peers, files) if foreign.bgp_peers else Translated()
    found = (haproxy, keepalived, peers)
    return Translated(
        translations=tuple(each for part in found for each in part.translations),
        problems=tuple(each for part in found for each in part.problems),
    )


def _haproxy(foreign: ForeignFiles, files: ReadFiles) -> Translated:
    """Read the files in order, as HAProxy does: single files may be empty, but not all."""
    from appliance.translation.haproxy import reader  # noqa: PLC0415  # a quarter of a start, for this case only

    contents = {part: content for each in foreign.haproxy for part, content in _contents(each, files)}
    read = [
        reader.ConfigurationFile(source=str(path), text=content)
        for path, content in contents.items()
        if isinstance(content, bytes)
    ]
    if len(read) < len(contents) or not any(each.text.strip() for each in read):
        unusable = {path: content for path, content in contents.items() if not isinstance(content, bytes)}
        return Translated(problems=tuple(starmap(_nothing, (unusable or contents).items())))
    found = reader.translate_all(read, environment=_environment(), read=files.read, http=foreign.http)
    return Translated(translations=(found,))


def _contents(path: Path, files: ReadFiles) -> Sequence[tuple[Path, Content]]:
    """Return a file, or those that HAProxy reads in a directory: `.cfg` and not hidden, in order."""
    try:
        if not path.is_dir():
            return [(path, files.content(path))]
        matching = files.matching(f"{glob.escape(str(path))}/*.cfg")
        parts = [found for each in matching if (found := Path(each)).is_file()]
    except OSError as error:
        return [(path, FileUnusable(error.strerror))]
    if not parts:
        return [(path, FileUnusable("no file of this directory ends in `.cfg`"))]
    return [(each, files.content(each)) for each in parts]


def _keepalived(path: Path, files: ReadFiles, programs: Sequence[str]) -> Translated:
    content = files.content(path)
    if not isinstance(content, bytes) or not content.strip():
        return Translated(problems=(_nothing(path, content),))
    from appliance.translation.keepalived import reader  # noqa: PLC0415  # as HAProxy's

    found = reader.translate(
        str(path),
        read=files.read,
        matching=files.matching,
        hostname=socket.gethostname(),
        environment=_environment(),
        programs=programs,
    )
    return Translated(translations=(found,))


def _bgp_peers(path: Path, files: ReadFiles) -> Translated:
    from appliance.translation import bgp_peers  # noqa: PLC0415  # as HAProxy's

    content = files.content(path)
    if not isinstance(content, bytes) or not content.strip():
        return Translated(problems=(_nothing(path, content),))
    try:
        document = read(content)
    except DocumentError as error:
        return Translated(problems=(unreadable(error, source=str(path)),))
    return Translated(translations=(bgp_peers.translate(document, source=str(path), hostname=this_node()),))


def _environment() -> dict[str, str]:
    """Return the variables that files may name, with U+FFFD for bytes that are not UTF-8, as all else is."""
    return {name: os.fsencode(value).decode(errors="replace") for name, value in os.environ.items()}


def _nothing(path: Path, content: Content) -> Problem:
    why = "the file is empty" if isinstance(content, bytes) else f"cannot be read: {content}"
    return Problem(message=why, source=str(path))


def _keys(node: Node) -> Iterable[str]:
    return node.value.keys() if isinstance(node.value, dict) else ()
