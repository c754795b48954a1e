"""Reads haproxy.cfg, and makes a configuration in the form of our own file of it, with a word on every line.

The steps: lines and words (`text`), what each directive says of its section (`directives`), what the sections
amount to (`building`), and what would be better than that (`proposals`), which is never mixed in.
"""

from collections.abc import Mapping

from appliance.translation.haproxy.building import common
from appliance.translation.haproxy.building.client_networks import ClientNetworks, ReadFile
from appliance.translation.haproxy.building.frontends import put_frontends
from appliance.translation.haproxy.building.plan import planned
from appliance.translation.haproxy.building.pools import put_pools
from appliance.translation.haproxy.building.stats_page import put_stats
from appliance.translation.haproxy.building.values import Build
from appliance.translation.haproxy.directives.sections import read_sections
from appliance.translation.haproxy.proposals import proposals
from appliance.translation.haproxy.text.lines import lines
from appliance.translation.haproxy.text.report import Report
from appliance.translation.haproxy.text.variables import Variables
from appliance.translation.translation import Translation
from appliance.translation.tree_builder import TreeBuilder


def translate(
    text: bytes | str, *, source: str, environment: Mapping[str, str], read: ReadFile
) -> Translation:
    """Return the configuration that haproxy.cfg amounts to, and what became of each line; never raises.

    `source` names the file in places, `environment` has the variables that the file may name, `read` returns
    what a file holds that it names (`src -f FILE`). Where a line is refused the configuration lacks what it
    says, and what it may have protected.
    """
    report = Report(source)
    variables = Variables(environment, source=source)
    sections = read_sections(lines(text, report, variables), report, variables)
    networks = ClientNetworks(read, on_use=lambda line: report.use(line.number))
    plan = planned(sections, networks, report)
    build = Build(tree=TreeBuilder(report.place(1)), report=report)
    defaults = common.gathered(plan, sections.found, build)
    put_frontends(plan, defaults, build)
    put_pools(plan, sections.found, defaults, build)
    common.put_defaults(defaults, sections.found, build)
    put_stats(plan, build)
    return Translation(root=build.tree.root, lines=report.lines(), proposals=proposals(plan))
