"""The manual page of the configuration, appliance.yaml(5): every key, from the model that reads the file."""

from collections.abc import Iterator
from typing import Final

from appliance.console.manual.pages import example, head, paragraphs, quoted, tagged
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
_FILES: Final = (
    ("/etc/appliance/appliance.yaml", "The configuration, where --config or APPLIANCE_CONFIG name no other."),
    ("/run/appliance/", "The accepted configuration with all defaults, numbered."),
    (
        "/var/lib/appliance/",
        "The last good configuration, which is used at a start if the current one has errors.",
    ),
)


def configuration_page() -> Iterator[str]:
    """Yield the lines of the page."""
    yield from head(NAME, "configuration of the load balancer appliance", section=5)
    yield ".SH DESCRIPTION"
    yield from paragraphs(_ABOUT)
    yield ".SH KEYS"
    for each in key_sections(link='keys of "{heading}"'):
        yield from _section(each)
    yield ".SH EXAMPLE"
    yield from example(EXAMPLE.strip("\n"))
    yield ".SH FILES"
    yield from tagged(_FILES)
    yield ".SH SEE ALSO"
    yield from (f".BR appliance\\-{each} (1)," for each in ("check", "reload", "schema"))
    yield ".BR appliance (1)"


def _section(section: KeySection) -> Iterator[str]:
    yield f".SS {quoted(section.heading)}"
    places = ", ".join(section.paths)
    yield from paragraphs(": ".join(filter(None, (places, section.about))))
    yield from tagged((row.key, _meaning(row)) for row in section.rows)


def _meaning(row: KeyRow) -> str:
    default = f"; default {row.default}" if row.default else ""
    needed = "Needed. " if row.needed else ""
    return f"{needed}{row.about} ({row.shape.replace('`', '')}{default.replace('`', '')})"
