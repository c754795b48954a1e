"""What `appliance reload --dry-run` prints: each key with its old and new value, and what it takes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click
import msgspec
from rich.console import Console

from appliance.console.output.error_positions import located
from appliance.core.rollout.preview import PreviewedChange, Takes
from appliance.model.paths import Paths
from appliance.wire.lines.control import Answer, AnswerProblem

_TAKES: Final = {
    Takes.LIVE: "live",
    Takes.GENERATION: "new workers",
    Takes.PROGRAM: "a program starts or stops",
    Takes.RESTART: "takes effect when the appliance is started again",
}


def print_preview(answer: Answer, paths: Paths, obeyed: str) -> None:
    """Print what a reload would do, then what refuses it, and what to do next; `obeyed` names the files."""
    changes = msgspec.convert(answer.values.get("changes", []), list[PreviewedChange])
    for change in changes:
        click.echo(f"{_place(change, paths.config)}{_change(change)}  [{_TAKES[change.takes]}]")
    for line in _programs(answer):
        click.echo(line)
    errors = Console(stderr=True, soft_wrap=True, highlight=False)
    for warning in msgspec.convert(answer.values.get("warnings", []), list[AnswerProblem]):
        errors.print(f"warning: {located(warning, paths.config)}", markup=False, style="yellow")
    for problem in answer.errors:
        errors.print(located(problem, paths.config), markup=False, style="red")
    click.echo(_verdict(answer, obeyed, changed=bool(changes)))


def _verdict(answer: Answer, obeyed: str, *, changed: bool) -> str:
    if not answer.ok:
        return "A reload would be refused, and change nothing: put right what is said above, and look again."
    if not changed:
        return f"Nothing would change: the appliance already obeys {obeyed}."
    return "Nothing was changed. To do it: appliance reload"


def _place(change: PreviewedChange, config: Path) -> str:
    return f"{change.source or config}:{change.line}:{change.column}: " if change.line is not None else ""


def _change(change: PreviewedChange) -> str:
    if change.old is None:
        return f"+ {change.path}" + (f": {change.new}" if change.new else "")
    if change.new is None:
        return f"- {change.path}" + (f": {change.old}" if change.old else "")
    return f"{change.path}: {change.old or '(as it was)'} -> {change.new or '(as it is now)'}"


def _programs(answer: Answer) -> Iterator[str]:
    for key, text in (
        ("generations", "new workers beside the old ones, whose sessions go on"),
        ("start", "is started"),
        ("stop", "is stopped, when its sessions have ended or its drain time is over"),
    ):
        for program in msgspec.convert(answer.values.get(key, []), list[str]):
            yield f"{program}: {text}"
