"""`monitor fail`: the pool whose failure makes the answer 503."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from appliance.model.messages.quoting import shown
from appliance.translation.haproxy.building.plan import Plan
from appliance.translation.haproxy.building.values import Build, Placed
from appliance.translation.haproxy.directives.section import Rule, Section
from appliance.translation.haproxy.text.line import Line
from appliance.translation.translation import Outcome

_COUNT: Final = re.compile(r"nbsrv(?:\(([^()]*)\))?")
_NONE_UP: Final = frozenset({("lt", "1"), ("le", "0"), ("eq", "0")})
_SOME_UP: Final = frozenset({("ge", "1"), ("gt", "0")})
_RIGHT: Final = "only `monitor fail if { nbsrv(BACKEND) lt 1 }` is supported"


def needed_pool(section: Section, plan: Plan, build: Build) -> Placed[str] | None:
    """Return the name of the pool that an answer depends on, None if there is none."""
    needed: Placed[str] | None = None
    for rule in section.failures:
        for line in (line for word in rule.condition for line in section.acls.get(word, ())):
            build.report.use(line.number)
        name = _backend(rule, section.acls)
        pool = plan.pool_name(name or section.name)
        if name is None:
            build.report.say(Outcome.REFUSED, rule.line.place, f"{shown(' '.join(rule.condition))}: {_RIGHT}")
        elif pool is None:
            build.report.say(
                Outcome.REFUSED, rule.line.place, f"there is no backend {shown(name)} with servers"
            )
        elif needed is not None and needed.value != pool:
            reason = (
                f"an answer depends on one pool, here {shown(needed.value)}: give this rule a separate port"
            )
            build.report.say(Outcome.REFUSED, rule.line.place, reason)
        else:
            needed = Placed(value=pool, place=rule.line.place)
    return needed


def _backend(rule: Rule, acls: Mapping[str, list[Line]]) -> str | None:
    """Return the backend whose servers a rule counts, "" for the section's own; None for another rule."""
    words = tuple(each for each in rule.condition if each not in {"{", "}"})
    if len(words) == 1 and len(acls.get(words[0], ())) == 1:
        words = acls[words[0]][0].texts[2:]
    return _counted(words, _NONE_UP if rule.verb == "if" else _SOME_UP)


def _counted(words: Sequence[str], right: frozenset[tuple[str, str]]) -> str | None:
    if len(words) != 3 or (words[1], words[2]) not in right:
        return None
    match = _COUNT.fullmatch(words[0])
    return (match[1] or "") if match else None
