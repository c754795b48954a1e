"""The manual pages: of each command from its help, options and example, and of the configuration."""

from collections.abc import Iterable, Iterator
from typing import Final

import click

import appliance
from appliance.console.command import COMMANDS, main
from appliance.model.config.key_reference import KeyRow, KeySection, key_sections

NAME: Final = "appliance.yaml"

_ABOUT: Final = """
The file that configures appliance(1): YAML, by default /etc/appliance/appliance.yaml. It is read at start,
by `appliance reload`, and without a request once it has changed and rested (key `reload.watch`).

`appliance check` shows whether it would be accepted, with file, line and column of each problem, and changes
nothing; `appliance check --here` checks this machine too. A file with errors is never used: the one that was
accepted last stays in force.

A duration is a number and its unit: 300ms, 5s, 2m, 24h, 1d. A percentage is a number and %. NAME stands for
a name that you choose: 1 to 63 letters, digits, full stops, underscores and dashes. A key is needed only
if its description says so.
"""
EXAMPLE: Final = """
api:
  frontends:
    kube-api: { bind: ["[::]:6443"], pool: masters }
pools:
  masters:
    check: { type: https, path: /readyz }
    servers:
      master-0: { address: 10.0.0.34:6443 }
      master-1: { address: 10.0.0.35:6443 }
"""
_READ_FILES: Final = (
    ("/etc/appliance/appliance.yaml", "The configuration, where --config or APPLIANCE_CONFIG name no other."),
    ("/run/appliance/", "The accepted configuration with all defaults, numbered."),
    (
        "/var/lib/appliance/",
        "The last good configuration, which is used at a start if the current one has errors.",
    ),
)

_STATUS: Final = (
    ("0", "Done, or all is well."),
    ("1", "Failure or refusal: the message says what to do."),
    ("2", "Misuse: the message names what is wrong on the command line."),
    ("130", "Interrupted by Ctrl-C."),
)
_FILES: Final = (
    ("/etc/appliance/appliance.yaml", "The configuration: see appliance.yaml(5)."),
    ("/run/appliance/", "Sockets, boards and the accepted configuration."),
    ("/var/lib/appliance/", "Directory of what outlives a reboot."),
)


def configuration_page() -> Iterator[str]:
    """Yield the lines of the page."""
    yield from head(NAME, "configuration of the load balancer appliance", section=5)
    yield ".SH DESCRIPTION"
    yield from paragraphs(_ABOUT)
    yield ".SH KEYS"
    for each in key_sections(link='keys of "{heading}"'):
        yield from _key_section(each)
    yield ".SH EXAMPLE"
    yield from example(EXAMPLE.strip("\n"))
    yield ".SH FILES"
    yield from tagged(_READ_FILES)
    yield ".SH SEE ALSO"
    yield from (f".BR appliance\\-{each} (1)," for each in ("check", "reload", "schema"))
    yield ".BR appliance (1)"


def _key_section(section: KeySection) -> Iterator[str]:
    yield f".SS {quoted(section.heading)}"
    places = ", ".join(section.paths)
    yield from paragraphs(": ".join(filter(None, (places, section.about))))
    yield from tagged((row.key, _meaning(row)) for row in section.rows)


def _meaning(row: KeyRow) -> str:
    default = f"; default {row.default}" if row.default else ""
    needed = "Needed. " if row.needed else ""
    return f"{needed}{row.about} ({row.shape.replace('`', '')}{default.replace('`', '')})"


def escaped(text: str) -> str:
    """Return a text for use within a line; a dash is that of options, which can be copied."""
    return text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")


def line(text: str) -> str:
    """Return a line of text, escaped if it begins with a full stop, which would be a request."""
    said = escaped(text)
    return f"\\&{said}" if said.startswith(".") else said


def quoted(text: str) -> str:
    """Return an argument of a macro."""
    return '"' + escaped(text).replace('"', "\\(dq") + '"'


def head(name: str, summary: str, *, section: int) -> Iterator[str]:
    """Yield the title of a page, and the section NAME."""
    title = f"appliance {appliance.__version__}"
    yield f'.TH {quoted(name.upper())} {section} "" {quoted(title)} "Load balancer"'
    yield ".SH NAME"
    yield f"{escaped(name)} \\- {summary[:1].lower()}{summary[1:]}"


def paragraphs(text: str) -> Iterator[str]:
    """Yield the lines of a text whose paragraphs are separated by blank lines."""
    for number, each in enumerate(filter(None, map(str.strip, text.split("\n\n")))):
        if number:
            yield ".PP"
        yield from (line(part.strip()) for part in each.splitlines())


def tagged(entries: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield a list of terms, each with its meaning."""
    for term, meaning in entries:
        yield ".TP"
        yield f".B {quoted(term)}"
        yield line(" ".join(meaning.split()) or "-")


def example(text: str) -> Iterator[str]:
    """Yield lines to type, unchanged."""
    yield ".EX"
    yield from map(line, text.splitlines())
    yield ".EE"


def pages() -> Iterator[tuple[str, str]]:
    """Yield the file name of each page and its text; always the same for the same commands."""
    root = click.Context(main, info_name="appliance", **main.context_settings)
    yield "appliance.1", _text(_overview(root))
    for name in COMMANDS:
        command = main.get_command(root, name)
        if command is not None:
            context = click.Context(command, info_name=name, parent=root)
            yield f"appliance-{name}.1", _text(_page(name, command, context))
    yield f"{NAME}.5", _text(configuration_page())


def _text(lines: Iterator[str]) -> str:
    return "\n".join(lines) + "\n"


def _overview(ctx: click.Context) -> Iterator[str]:
    yield from head("appliance", "load balancer for OpenShift and Kubernetes", section=1)
    yield from _synopsis(main, ctx)
    yield ".SH DESCRIPTION"
    yield from paragraphs(main.help or "")
    yield ".SH COMMANDS"
    yield from tagged((name, f"{each.summary} See appliance-{name}(1).") for name, each in COMMANDS.items())
    yield from _options(main, ctx)
    yield from _example(main)
    yield ".SH EXIT STATUS"
    yield from tagged(_STATUS)
    yield ".SH FILES"
    yield from tagged(_FILES)
    yield ".SH SEE ALSO"
    yield ".BR appliance.yaml (5),\n.BR supervisorctl (1),\n.BR haproxy (1),\n.BR keepalived (8)"


def _page(name: str, command: click.Command, ctx: click.Context) -> Iterator[str]:
    yield from head(f"appliance-{name}", COMMANDS[name].summary.rstrip("."), section=1)
    yield from _synopsis(command, ctx)
    yield ".SH DESCRIPTION"
    yield from paragraphs(command.help or "")
    yield from _options(command, ctx)
    yield from _example(command)
    if isinstance(command, click.Group):
        yield ".SH COMMANDS"
        for below, each in command.commands.items():
            yield from _section(each, click.Context(each, info_name=below, parent=ctx))
    yield ".SH SEE ALSO"
    yield ".BR appliance (1)\nfor the options that all commands have, exit status and files."


def _section(command: click.Command, ctx: click.Context) -> Iterator[str]:
    yield f".SS {quoted(ctx.command_path)}"
    yield from _usage(command, ctx)
    yield ".PP"
    yield from paragraphs(command.help or "")
    yield from tagged(_records(command, ctx))
    if command.epilog:
        yield ".PP"
        yield from example(_typed(command.epilog))


def _synopsis(command: click.Command, ctx: click.Context) -> Iterator[str]:
    yield ".SH SYNOPSIS"
    yield from _usage(command, ctx)


def _usage(command: click.Command, ctx: click.Context) -> Iterator[str]:
    yield f".B {quoted(ctx.command_path)}"
    yield from paragraphs(" ".join(command.collect_usage_pieces(ctx)))


def _options(command: click.Command, ctx: click.Context) -> Iterator[str]:
    yield ".SH OPTIONS"
    yield from tagged(_records(command, ctx))


def _records(command: click.Command, ctx: click.Context) -> Iterator[tuple[str, str]]:
    """Yield the options in the form of `--help`, with their defaults and variables."""
    for each in command.get_params(ctx):
        if record := each.get_help_record(ctx):
            yield record


def _example(command: click.Command) -> Iterator[str]:
    if command.epilog:
        yield ".SH EXAMPLE"
        yield from example(_typed(command.epilog))


def _typed(epilog: str) -> str:
    return epilog.removeprefix("Example: ")
