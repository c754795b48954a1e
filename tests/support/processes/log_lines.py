"""What a program has logged, read while it goes on logging."""

import contextlib
import json
from pathlib import Path

Event = dict[str, object]


def logged(log: str | Path, *names: str) -> list[Event]:
    """Return the events of a log (its text or its file), oldest first: those of these names, without any all.

    What is no event is left out: a library's own words, and the line that is being written just now.
    """
    text = log if isinstance(log, str) else log.read_text(errors="replace")
    found = (_event(line) for line in text.splitlines())
    return [event for event in found if event and (not names or event["event"] in names)]


def _event(line: str) -> Event:
    # supervisord and journald put words of their own before it.
    with contextlib.suppress(ValueError):
        return dict(json.loads(line[line.index("{") :]))
    return {}
