"""`appliance reload`: sends the line `reload` to the reload socket, and prints the answer."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click
import msgspec
from click.core import ParameterSource
from rich.console import Console

from appliance.console.output.error_positions import located
from appliance.console.output.printing import print_json
from appliance.console.output.refusal import LOOK, Refused
from appliance.console.runtime_access import require_access
from appliance.core.rollout.preview import PreviewedChange, Takes
from appliance.model.messages.quoting import printable
from appliance.model.paths import Paths
from appliance.net.files import snapshots
from appliance.net.logging.journal import SyslogSeverity, levelled
from appliance.net.logging.output import STDERR
from appliance.wire.lines.control import Answer, AnswerProblem, ControlError, bad, decode_answer

_TAKES: Final = {
    Takes.LIVE: "live",
    Takes.GENERATION: "new workers",
    Takes.PROGRAM: "a program starts or stops",
    Takes.RESTART: "takes effect when the appliance is started again",
}


def print_preview(answer: Answer, paths: Paths, obeyed: str) -> None:
    """Print what a reload would do, then what prevents it, and the next step; `obeyed` names the files."""
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
        return "A reload would be refused, and change nothing: fix the problems above, and try again."
    if not changed:
        return f"Nothing would change: the appliance already uses {obeyed}."
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
        ("generations", "new workers beside the old ones, whose sessions continue"),
        ("start", "is started"),
        ("stop", "is stopped, when its sessions have ended or its drain time is over"),
    ):
        for program in msgspec.convert(answer.values.get(key, []), list[str]):
            yield f"{program}: {text}"


_MEND: Final = "correct it; `appliance check` looks at the file, `appliance reload` applies it"
_FOR_NOW: Final = "`appliance status` shows whether it succeeded; the files are correct"
_LINES: Final = {
    (False, False): b"reload\n",
    (True, False): b"reload --force\n",
    (False, True): b"reload --dry-run\n",
}
"""The line to send, by whether it is forced and whether it is a dry run."""


class ReloadUnavailable(Exception):  # noqa: N818  # the other side is not there: nothing is wrong with us
    """The program `reload` does not answer."""


@click.command(epilog="Example: appliance reload --json | jq .changed")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON: ok, and errors or changed.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=180.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for the answer.",
)
@click.option(
    "--force", "forced", is_flag=True, help="Reload even if that puts a virtual IP of this node into fault."
)
@click.option(
    "--dry-run",
    "rehearsed",
    is_flag=True,
    help="Show what a reload would change, and what would refuse it; change nothing.",
)
@click.pass_context
def reload(ctx: click.Context, *, as_json: bool, timeout: float, forced: bool, rehearsed: bool) -> None:
    """Apply the configuration as it is now.

    A configuration with errors changes nothing: the command prints all of them and exits with code 1. A
    reload that is requested while another one runs waits for its turn. The appliance reads the file that it
    was started with; another --config is refused.

    With --dry-run, every program prepares the change and discards it, so that everything that would refuse a
    reload is reported: new ports are bound for a moment, and new workers start and exit without a client.

    A reload that is refused for a passing reason (a program went away, another process has a port) is retried
    automatically for some minutes; the exit code is 1 nevertheless. Errors in the files are not retried.

    JSON: ok, configuration (its number; generation is the same), changed (paths), duration_s, warnings; or ok
    and errors (message, path, line, column, and source where that is not the YAML), with configuration and
    changed if it was accepted and a program does not use it yet, and with again_in (seconds) where it is
    tried again. With --dry-run: ok, errors or warnings, changes (path, old, new, takes: live, generation,
    program or restart; line, column, source), generations (programs with new workers), start and stop
    (programs).
    """
    if rehearsed and forced:
        raise click.UsageError(
            "--dry-run and --force exclude each other: nothing is done that could be forced"
        )
    paths: Paths = ctx.obj
    require_access(paths.runtime)
    other = _other_file(paths)
    if other and ctx.find_root().get_parameter_source("config") is ParameterSource.COMMANDLINE:
        raise click.UsageError(
            f"the appliance uses {other}, and {paths.config} only if it is started with that: "
            f"name the file that it uses, or none. See: appliance check --config {paths.config}"
        )
    try:
        answer = ask_reload(paths, timeout, line=_LINES[forced, rehearsed])
    except ReloadUnavailable as error:
        if not as_json:
            raise Refused(str(error), step=LOOK) from error
        answer = bad(str(error))
    if other:
        click.echo(f"warning: the appliance uses {other}, and has not looked at {paths.config}", err=True)
    if as_json:
        print_json({"ok": answer.ok, **_errors(answer), **answer.values})
    elif rehearsed:
        print_preview(answer, paths, obeyed_files(paths))
    elif answer.ok:
        _print_success(answer, paths)
    else:
        _print_errors(answer, paths)
    if not answer.ok:
        raise SystemExit(1)


def _other_file(paths: Paths) -> str | None:
    """Return the file that the running appliance uses, if it is not one of those named here."""
    accepted = snapshots.readable(paths.accepted)
    named = {printable(str(each.resolve())) for each in paths.operators_files}
    if accepted is None or str(Path(accepted.source).resolve()) in named:
        return None
    return accepted.source


def obeyed_files(paths: Paths) -> str:
    """Return the names of the files that the running appliance uses."""
    if other := _other_file(paths):
        return other
    return " with ".join(
        [str(each) for each in paths.operators_files if each.exists()] or [str(paths.config)]
    )


def ask_reload(paths: Paths, timeout: float, *, line: bytes = b"reload\n") -> Answer:
    """Send the line and return the answer; raises ReloadUnavailable without one in `timeout` seconds."""
    path = paths.reload_socket
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(timeout)
            connection.connect(str(path))
            connection.sendall(line)
            with connection.makefile("rb") as lines:
                return decode_answer(lines.readline())
    except TimeoutError as error:
        raise ReloadUnavailable(
            f"no answer within {timeout:g} s; the reload may still be under way"
        ) from error
    except (OSError, ControlError) as error:
        why = error.strerror or error if isinstance(error, OSError) else error
        raise ReloadUnavailable(
            f"the program reload does not answer at {path} ({why}). {_about_supervisord(paths)}"
        ) from error


def _about_supervisord(paths: Paths) -> str:
    """Return a sentence on whether supervisord, and so the rest of the appliance, still runs."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.connect(str(paths.supervisor_socket))
    except OSError:
        return "Nor does supervisord.\nIs the appliance running, and is this its --runtime-dir?"
    return "The others go on: traffic is not affected."


def _errors(answer: Answer) -> dict[str, object]:
    fields = ("message", "path", "line", "column")
    errors = [
        {name: getattr(each, name) for name in fields} | ({"source": each.source} if each.source else {})
        for each in answer.errors
    ]
    return {"errors": errors} if errors else {}


def _print_success(answer: Answer, paths: Paths) -> None:
    changed = answer.values.get("changed")
    took = answer.values.get("duration_s")
    seconds = f" in {took:.2f} s" if isinstance(took, float | int) else ""
    if isinstance(changed, list) and changed:
        click.echo(f"Done{seconds}: configuration {answer.values.get('generation')}. Changed:")
        for path in changed:
            click.echo(f"  {path}")
    else:
        click.echo(f"Unchanged: the appliance already uses {obeyed_files(paths)}.")
    console = Console(stderr=True, soft_wrap=True, highlight=False)
    for warning in msgspec.convert(answer.values.get("warnings", []), list[AnswerProblem]):
        text = f"warning: {located(warning, paths.config)}"
        console.print(levelled(text, SyslogSeverity.WARNING, STDERR), markup=False, style="yellow")


def _print_errors(answer: Answer, paths: Paths) -> None:
    console = Console(stderr=True, soft_wrap=True, highlight=False)
    for problem in answer.errors:
        console.print(levelled(located(problem, paths.config), SyslogSeverity.ERROR, STDERR), markup=False)
    number = answer.values.get("generation")
    refused, step = "Refused: nothing has changed.", _MEND
    again_in = answer.values.get("again_in")
    if isinstance(again_in, int | float):
        refused = f"Refused for now: nothing has changed, and it is tried again by itself in {again_in:g} s."
        step = _FOR_NOW
    if number is not None:
        refused = f"Accepted as configuration {number}, but not yet used by all programs: this is retried."
        step = LOOK
    console.print(levelled(refused, SyslogSeverity.ERROR, STDERR), markup=False, style="bold red")
    console.print(levelled(f"Next: {step}", SyslogSeverity.ERROR, STDERR), markup=False)
