"""Translates haproxy.cfg into a configuration in our own format, with an outcome for every line.

The steps: lines and words (`text`), the effect of each directive on its section (`directives`), the
combination of the sections (`building`), and possible improvements (`proposals`), which are kept separate.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from appliance.model.document.tree import Entry, Node
from appliance.translation.haproxy.building import common
from appliance.translation.haproxy.building.client_networks import ClientNetworks, ReadFile
from appliance.translation.haproxy.building.frontends import put_frontends
from appliance.translation.haproxy.building.plan import Plan, Role, planned
from appliance.translation.haproxy.building.pools import put_pools
from appliance.translation.haproxy.building.stats_page import put_stats
from appliance.translation.haproxy.building.values import Build
from appliance.translation.haproxy.directives.section import Section
from appliance.translation.haproxy.directives.sections import read_sections
from appliance.translation.haproxy.http.leaving import leave, refuse
from appliance.translation.haproxy.http.remainder import left_sections, remainder
from appliance.translation.haproxy.proposals import proposals
from appliance.translation.haproxy.text.lines import lines
from appliance.translation.haproxy.text.report import Report
from appliance.translation.haproxy.text.variables import Variables
from appliance.translation.translation import HttpSections, Outcome, Translation
from appliance.translation.tree_builder import TreeBuilder


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigurationFile:
    """A haproxy.cfg, or a part of one; `source` is its name in places."""

    source: str
    text: bytes | str


def translate(
    text: bytes | str,
    *,
    source: str,
    environment: Mapping[str, str],
    read: ReadFile,
    http: HttpSections = "refuse",
) -> Translation:
    """Return the result of `translate_all` for one file."""
    only = ConfigurationFile(source=source, text=text)
    return translate_all([only], environment=environment, read=read, http=http)


def translate_all(
    files: Sequence[ConfigurationFile],
    *,
    environment: Mapping[str, str],
    read: ReadFile,
    http: HttpSections = "refuse",
) -> Translation:
    """Return the configuration equivalent to the files, and the outcome of each line; never raises.

    There is at least one file, in the order that HAProxy gets them. `environment` has the variables that they
    may name, `read` returns the content of a file that they name (`src -f FILE`). If a line is refused, the
    configuration lacks its setting, and whatever it may have protected. `http` decides what happens to
    sections that read HTTP.
    """
    report = Report()
    variables = Variables(environment, source="")
    every = (lines(each.text, each.source, report, variables) for each in files)
    sections = read_sections(every, report, variables)
    networks = ClientNetworks(read, on_use=lambda line: report.use(line.number))
    left = left_sections(sections.proxies)
    numbers = {each.header.number for each in left}
    others = [each for each in sections.proxies if each.header.number not in numbers]
    told = leave(left, sections, report) if http == "skip" else refuse(left, sections, report)
    plan = planned(replace(sections, proxies=others), networks, report)
    if told:
        _refuse_nothing(left, plan, report)
    build = Build(tree=TreeBuilder(report.place(1)), report=report)
    defaults = common.gathered(plan, sections.found, build)
    put_frontends(plan, defaults, build)
    put_pools(plan, sections.found, defaults, build)
    common.put_defaults(defaults, sections.found, build)
    put_stats(plan, build)
    found = Translation(
        root=build.tree.root,
        lines=report.lines(),
        proposals=proposals(plan),
        left=told,
        remainder=remainder(_whole(files), sections, left) if told else "",
    )
    return _located(found, report) if report.is_of_several else found


def _whole(files: Sequence[ConfigurationFile]) -> str:
    """Return all files as one text, with the line numbers of the report."""
    texts = (each.text for each in files)
    return "\n".join(each.decode(errors="replace") if isinstance(each, bytes) else each for each in texts)


def _refuse_nothing(left: Sequence[Section], plan: Plan, report: Report) -> None:
    """Refuse a file of which nothing is served: `mode http` for all may be a mistake, and all would stop."""
    if not any(each.role is Role.FORWARD for each in plan.fronts):
        reason = "nothing is left to serve: every section that forwards connections reads HTTP or is left out"
        report.add(Outcome.REFUSED, left[0].header.place, reason)


def _located(found: Translation, report: Report) -> Translation:
    """Return the same with each place in its own file; places of lines already are."""
    return replace(
        found,
        root=_node_located(found.root, report),
        proposals=tuple(
            replace(each, place=report.located(each.place)) if each.place else each
            for each in found.proposals
        ),
    )


def _node_located(node: Node, report: Report) -> Node:
    place = report.located(node.place)
    if isinstance(node.value, dict):
        entries = {
            key: Entry(place=report.located(each.place), node=_node_located(each.node, report))
            for key, each in node.value.items()
        }
        return Node(place=place, value=entries)
    if isinstance(node.value, list):
        return Node(place=place, value=[_node_located(each, report) for each in node.value])
    return Node(place=place, value=node.value)
