"""What Debian's keepalived understands of a keepalived.conf, which it tells by options of its own."""

import contextlib
import re
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from support.network.namespaces import Node
from support.processes.waiting import wait_until
from support.run import tools

_END: Final = "------< Interfaces >------"
_ITEM: Final = re.compile(r"^ {3}(\S.*?)(?: \(\d+\))? ?:? *= *(.*)$|^ {3}(\S.*?)(?: \(\d+\))? ?:$")
_UNKNOWN: Final = re.compile(
    r"\((?:.*: )?Line (\d+)\) (?:Unknown keyword '(.*)'|Unexpected '(\{)' - ignoring)"
)


@dataclass(slots=True, kw_only=True)
class Understood:
    """One block of the dump: its values by their names, and its lists."""

    values: dict[str, str] = field(default_factory=dict)
    lists: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))


Dump = Mapping[tuple[str, str], Understood]
"""The instances and scripts of a file, by kind and name."""


def understood(node: Node, *texts: str) -> list[Dump]:
    """Return what keepalived understands of each of these files, on a host lb1; all at the same time."""
    with tempfile.TemporaryDirectory(prefix="lb-dump-") as directory, contextlib.ExitStack() as running:
        roots = [Path(directory) / str(number) for number in range(len(texts))]
        for root, text in zip(roots, texts, strict=True):
            root.mkdir()
            (root / "keepalived.conf").write_text(text)
            running.callback(_start(node, root).kill)
        for root in roots:
            wait_until(partial(_is_told, root), what=f"the dump of {root.name}", timeout=60.0)
        return [_blocks((root / "log").read_text()) for root in roots]


def _is_told(root: Path) -> bool:
    return _END in (root / "log").read_text()


def _start(node: Node, root: Path) -> subprocess.Popen[bytes]:
    command = [tools.path("keepalived") or "keepalived", "--dont-fork", "--log-console", "--dump-conf"]
    command += ["--vrrp", f"--use-file={root / 'keepalived.conf'}", "--config-id=lb1"]
    command += [f"--pid={root / 'pid'}", f"--vrrp_pid={root / 'vrrp.pid'}"]
    with (root / "log").open("wb") as output:
        return node.start(command, output=output)


def _blocks(log: str) -> Dump:
    found: dict[tuple[str, str], Understood] = {}
    block, heading = Understood(), ""
    for stamped in log.partition(_END)[0].splitlines():
        line = stamped.partition(": ")[2]
        begin = re.match(r"^ VRRP (Instance|Script) = (.*)$", line)
        if begin:
            block, heading = found.setdefault((begin[1], begin[2]), Understood()), ""
        elif line.startswith("     "):
            block.lists[heading].append(line.strip())
        elif item := _ITEM.match(line):
            heading = item[3] or ""
            if item[1]:
                block.values[item[1]] = item[2]
    return found


def first_words(path: Path, *, config_id: str) -> list[tuple[int, str]]:
    """Return line and first word of all statements of a file that has no directives of keepalived.

    Each is unknown to it and told; a closing brace is one of them. It reads the file several times, and names
    it only from the second time on.
    """
    command = [tools.path("keepalived") or "keepalived", "--config-test", f"--use-file={path}"]
    run = subprocess.run(
        [*command, f"--config-id={config_id}"], capture_output=True, text=True, timeout=30, check=False
    )
    return [
        (int(match[1]), match[2] if match[3] is None else match[3])
        for match in (_UNKNOWN.fullmatch(line) for line in _first_time(run.stderr, path))
        if match
    ]


def _first_time(told: str, path: Path) -> Iterator[str]:
    for line in told.splitlines():
        if line.startswith((f"({path}: ", f"({path.name}: ")):
            return
        yield line
