"""What an operator does next about each problem of a status: a command, or what to put right.

Problems are sentences, of us and of programs that may be of another version; so they are recognised by how
they begin. A test goes through every sentence in the code that becomes a problem.
"""

import re
from typing import Final

from appliance.core.status import connection_room

_STEPS: Final = tuple(
    (re.compile(pattern), step)
    for pattern, step in (
        (r"no accepted configuration: ", "`appliance check`, then `appliance run` or its unit writes it"),
        (
            r"the appliance does not run: ",
            "start it: `appliance run`, or its unit; or name its --runtime-dir",
        ),
        (
            r"supervisord does not answer: ",
            "the programs go on; start the appliance again, which takes them over",
        ),
        (r"waits for a first configuration: ", "write it; `appliance check` says what is wrong with it"),
        (r"the last reload was refused: ", "put it right; what is saved is obeyed by `appliance reload`"),
        (
            r"the last reload was refused for now",
            "nothing, if it comes through; else put that right: `appliance reload` tries at once",
        ),
        (r"\S+ socket \S+: .* belongs to ", "do one of the two, then it is listened on within a second"),
        (r"(?P<name>\S+) socket \S+: ", "remove what is there, or name another in the section `{name}`"),
        (
            r"frontend (?P<name>\S+) is full: ",
            "`appliance sessions --frontend {name}` shows who; else raise its max_connections",
        ),
        (r"pool (?P<name>\S+) has no server up", "`appliance why {name}`"),
        (
            r"\S+ cannot write (?P<name>[^:]+)",
            "make room there, or give the appliance's user the right to write",
        ),
        (r"vrrp lacks ", "start it as root, by its unit, or in a container that has them"),
        (r"virtual IPs are left to others", "`appliance reload`"),
        (r"virtual IP (?P<name>\S+) ", "`appliance why {name}`"),
        (r"connections cannot be (redirected|forwarded)", "`appliance check --here`"),
        (r"virtual IPs move without their connections", "`appliance why linger-failed`"),
        (r"the kernel tracks \d+ of \d+ connections", connection_room.ADVICE),
        (r"checks are outdated", "see the program health: its log, and `{supervisorctl} restart health`"),
        (r"discover", "`appliance discover`; its log has the API's answers"),
        (r"property (?P<name>\S+)", "put it right in the machine's properties: `appliance guest show`"),
        (r"(?P<name>\S+) is \S+", "its log says why; `{supervisorctl} restart {name}` starts it again"),
    )
)


def next_step(problem: str, *, supervisorctl: str) -> str | None:
    """Return what to do about a problem, None where we know of nothing.

    `supervisorctl` is the command with the socket of this appliance: what is returned can be pasted.
    """
    for pattern, step in _STEPS:
        if found := pattern.match(problem):
            return step.format(supervisorctl=supervisorctl, **found.groupdict())
    return None
