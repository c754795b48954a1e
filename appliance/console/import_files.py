"""`appliance import`: translates haproxy.cfg and keepalived.conf into our YAML, and reports on each line."""

import stat
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import click
import msgspec

from appliance.console.output.refusal import Refused
from appliance.model.paths import Paths
from appliance.net.files import state_files
from appliance.net.files.atomic_write import write_atomically
from appliance.net.sources.foreign_files import ForeignFiles, translated
from appliance.net.sources.read_files import ReadFiles
from appliance.translation import import_report
from appliance.translation.import_result import ImportResult, import_result
from appliance.translation.translation import HttpSections


@click.command("import", epilog="Example: appliance import haproxy.cfg keepalived.conf -o appliance.yaml")
@click.argument("haproxy", required=False, type=click.Path(path_type=Path))
@click.argument("keepalived", required=False, type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Write the YAML to this file, not to standard output.",
)
@click.option(
    "--report", type=click.Path(path_type=Path), help="Write the report to this file, not to standard error."
)
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON; the keys are stable.")
@click.option(
    "--http",
    type=click.Choice(get_args(HttpSections)),
    default="refuse",
    show_default=True,
    help="Sections that read HTTP: refuse each as an error, or leave them to HAProxy.",
)
@click.option(
    "--rest",
    type=click.Path(path_type=Path),
    help="With --http skip: write the haproxy.cfg that is left for HAProxy to this file.",
)
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@click.pass_obj
def import_files(  # noqa: PLR0913  # each option is one
    paths: Paths,
    *,
    haproxy: Path | None,
    keepalived: Path | None,
    output: Path | None,
    report: Path | None,
    as_json: bool,
    http: HttpSections,
    rest: Path | None,
    force: bool,
) -> None:
    """Translate HAPROXY (a haproxy.cfg) and KEEPALIVED (a keepalived.conf) into a configuration.

    A comment names the source line of each entry. The report lists every line as kept, changed, ignored or
    refused, with the reason, and then proposes improvements. One file is enough: appliance --keepalived FILE
    import. HAPROXY may be a directory, as for `haproxy -f`; for several files: appliance --haproxy A
    --haproxy B import.

    With --http skip, sections that read HTTP are left to HAProxy. The report lists them, the addresses on
    which nothing listens without HAProxy, and what they would lose with `mode tcp`.

    Exits 0 if no line is refused and `appliance check` accepts the YAML, else 1; 2 if a file cannot be read,
    or the output already exists.

    JSON: ok, counts, lines (file, line, column, text, outcome, reason), problems (as those of check),
    left (section, name, file, line, addresses), proposals (name, message, file, line, example).
    """
    foreign = ForeignFiles(
        haproxy=(haproxy,) if haproxy else paths.haproxy,
        keepalived=keepalived or paths.keepalived,
        http=http,
    )
    if not foreign.paths:
        raise click.UsageError("nothing to import: name a haproxy.cfg, or a keepalived.conf by --keepalived")
    if rest and http != "skip":
        raise click.UsageError("--rest requires --http skip: without it nothing is left to HAProxy")
    targets = [each for each in (output, report, rest) if each]
    _refuse_taken(targets, force=force)
    files = ReadFiles()
    result = _result(foreign, files)
    _give(result.yaml, output, files.paths)
    if rest and result.remainder:
        _give(result.remainder, rest, files.paths)
    values = msgspec.json.format(msgspec.json.encode(import_report.as_values(result)), indent=2).decode()
    text = f"{values}\n" if as_json else import_report.as_text(result)
    if rest and not result.remainder and not as_json:
        text += f"nothing is left to HAProxy: {rest} is not written\n"
    if report:
        _give(text, report, files.paths)
    else:
        click.echo(text, nl=False, err=True)
    if not result.ok:
        raise SystemExit(1)


def _refuse_taken(targets: Sequence[Path], *, force: bool) -> None:
    for each in targets:
        if each.exists() and not force:
            raise click.UsageError(f"{each} already exists: --force replaces it")
        if each.exists() and (found := state_files.unusual(each)):
            raise click.UsageError(f"{each} is {found}, not a file")


def _result(foreign: ForeignFiles, files: ReadFiles) -> ImportResult:
    found = translated(foreign, files)
    if found.problems:
        raise click.UsageError("; ".join(map(str, found.problems)))
    return import_result(found.translations)


def _give(text: str, target: Path | None, sources: Sequence[Path]) -> None:
    """Print a text, or write it to a file that only readers of its sources can read."""
    if target is None:
        click.echo(text, nl=False)
        return
    mode = 0o666
    for each in sources:
        mode &= stat.S_IMODE(each.stat().st_mode)
    try:
        write_atomically(target, text.encode(), mode=mode | stat.S_IRUSR | stat.S_IWUSR)
    except OSError as error:
        said = f"{target}: {error.strerror or error}"
        raise Refused(said, step="name a file in a directory where this user may write") from error
