"""`appliance check`: prints all problems of a configuration at once."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import click
from rich.console import Console
from rich.text import Text

from appliance.console.output.printing import print_json
from appliance.model.loading.loading import Loaded
from appliance.model.messages.problems import Problem, Severity, ordered
from appliance.model.paths import Paths
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.files.standard_input import read_standard_input
from appliance.net.files.state_files import FileUnusable
from appliance.net.sources.judging import OperatorsFiles, collect, load
from appliance.net.sources.read_files import ReadFiles
from appliance.translation.combined_files import changes, together

_STANDARD_INPUT: Final = "-"
_NEXT: Final = "Next: correct it at the place shown; `man appliance.yaml` has every key."
_NAME: Final = "<stdin>"
_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow"}


@click.command(epilog="Example: appliance check appliance.yaml && appliance reload")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the problems as JSON; the keys are stable.")
@click.option(
    "--here",
    is_flag=True,
    help="Also check this machine: interfaces, ports, files, commands, rights, open files, nftables, "
    "and which other node holds a virtual IP.",
)
@click.pass_obj
def check(paths: Paths, *, file: Path | None, as_json: bool, here: bool) -> None:
    """Validate FILE, by default the configuration of --config, and print every problem with its place.

    `-` is standard input.

    The files of --haproxy and --keepalived, or of `source`, are checked too. Lines that mean something else
    here, and sections that are left to HAProxy, are warnings. --here binds ports for a moment, and asks
    neighbours who holds the virtual IPs; a running appliance is not disturbed. Exits 0 if there are no
    errors; warnings do not count. Changes nothing, and asks no program. FILE is checked for any node, unless
    --here or APPLIANCE_NODE names one.

    JSON: ok, file, files, errors, warnings; each problem has message, severity, source, path, line and
    column.
    """
    found = collect(paths if file is None else _with(paths, file), _given(file))
    loaded = load(found, number=0, here=here or file is None)
    added = list(changes(found.translations))
    if here and loaded.snapshot is not None:
        added += _lacks(loaded.snapshot, found, paths)
    loaded = replace(loaded, problems=ordered((*loaded.problems, *added)))
    files = [str(each) for each in found.files]
    if as_json:
        print_json(
            {
                "ok": not loaded.errors,
                "file": files[0],
                "files": files,
                "errors": loaded.errors,
                "warnings": loaded.warnings,
            }
        )
    else:
        _print(files, loaded)
    if loaded.errors:
        raise SystemExit(1)


def _with(paths: Paths, file: Path) -> Paths:
    """Return the paths with another file of ours, which is then required, whatever else is there.

    Standard input is named `<stdin>` in problems.
    """
    if str(file) == _STANDARD_INPUT:
        return replace(paths, config=Path(_NAME))
    alone = replace(paths, config=file, haproxy=(), keepalived=None)
    return replace(paths, config=file) if file.exists() else alone


def _lacks(snapshot: Snapshot, found: OperatorsFiles, paths: Paths) -> Iterator[Problem]:
    """Yield what a configuration without errors needs and this machine lacks, and scripts that will fail."""
    from appliance.console.here.haproxy_scripts import haproxys_scripts  # noqa: PLC0415  # as the next
    from appliance.console.here.machine import lacks  # noqa: PLC0415  # netlink and TLS, for this case only

    source = str(found.config)
    document, _ = together(found.document, found.translations, source=source)
    for each in lacks(snapshot, paths):
        yield document.problem(each, source=source)
    for each in haproxys_scripts(snapshot):
        problem = document.problem(each, source=source)
        if problem.source == source:  # those of keepalived.conf are among its changed lines
            yield problem


def _given(file: Path | None) -> ReadFiles:
    """Return no file, or the content of standard input if requested."""
    if file is None or str(file) != _STANDARD_INPUT:
        return ReadFiles()
    try:
        return ReadFiles({_NAME: read_standard_input()})
    except FileUnusable as error:
        if sys.stdin is not None and sys.stdin.isatty():
            raise click.UsageError(f"standard input {error}") from error
        return ReadFiles({_NAME: error})


def _print(files: Sequence[str], loaded: Loaded) -> None:
    console = Console(highlight=False, soft_wrap=True)
    for problem in loaded.problems:
        console.print(_line(problem))
    console.print(Text(f"{', '.join(files)}: {_result(loaded)}", style="bold" if loaded.errors else "green"))
    if loaded.errors:
        click.echo(_NEXT, err=True)


def _line(problem: Problem) -> Text:
    severity = "" if problem.severity is Severity.ERROR else f"{problem.severity}: "
    path = f"{problem.path}: " if problem.path else ""
    return Text.assemble(
        (f"{problem.where}: " if problem.where else "", "bold"),
        (severity, _COLOURS[problem.severity]),
        (path, "cyan"),
        (problem.message, _COLOURS[problem.severity]),
    )


def _result(loaded: Loaded) -> str:
    counts = ((len(loaded.errors), "error"), (len(loaded.warnings), "warning"))
    parts = [f"{count} {word}{'s' if count > 1 else ''}" for count, word in counts if count]
    return ", ".join(parts if loaded.errors else ["ok", *parts])
