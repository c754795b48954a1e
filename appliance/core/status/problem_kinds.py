"""What can be wrong, by kind: the sentence that reports it, and the operator's next step."""

from enum import Enum
from typing import Self

from appliance.core.status import connection_room

# Each has the kind: a name that several things share is refused without.
_WHY_POOL = "`appliance why {subject} --kind pool`"
_WHY_VIRTUAL_IP = "`appliance why {subject} --kind vip`"
_WHY_SHARED_IP = "`appliance why {subject} --kind shared`"
_WHY_NEIGHBOR = "`appliance why {subject} --kind neighbor`"


class ProblemKind(Enum):
    """Sentence and next step. `{detail}` describes the problem; `{supervisorctl}` is with our socket."""

    NO_CONFIGURATION = (
        "no accepted configuration: {detail}",
        "`appliance check`, then `appliance run` or its unit writes it",
    )
    NOT_RUNNING = (
        "the appliance does not run: {detail}",
        "start it: `appliance run`, or its unit; or name its --runtime-dir",
    )
    NO_SUPERVISORD = (
        "supervisord does not answer: {detail}",
        "the programs go on; start the appliance again, which takes them over",
    )
    AWAITED = (
        "waits for a first configuration: {detail}",
        "write it; `appliance check` shows its errors",
    )
    REFUSED = (
        "the last reload was refused: {detail}",
        "correct it; `appliance reload` applies what is saved",
    )
    REFUSED_FOR_NOW = (
        "the last reload was refused for now, and is tried again: {detail}",
        "nothing if the retry succeeds; otherwise fix the cause, and `appliance reload` retries at once",
    )
    SOCKET = (
        "{subject} socket {detail}",
        "remove the existing file, or set another path in the section `{subject}`",
    )
    SOCKET_OF_ANOTHER_USER = (
        "{subject} socket {detail}",
        "do one of the two: the frontend listens within a second",
    )
    FRONTEND_FULL = (
        "frontend {subject} is full: {detail} connections",
        "`appliance sessions --frontend {subject}` shows who; else raise its max_connections",
    )
    POOL_DOWN = ("pool {subject} has no server up", _WHY_POOL)
    NOT_WRITTEN = (
        "{subject} cannot write {detail}",
        "make room there, or give the appliance's user the right to write",
    )
    CAPABILITIES = (
        "vrrp lacks {detail}: no virtual IP can be held here",
        "start it as root, by its unit, or in a container that has them",
    )
    LEFT_TO_OTHERS = (
        "virtual IPs are left to others since the line `stop`: `appliance reload` has them back",
        "`appliance reload`",
    )
    VIRTUAL_IP = ("virtual IP {subject} {detail}", _WHY_VIRTUAL_IP)
    NOT_REDIRECTED = ("connections cannot be redirected: {detail}", "`appliance check --here`")
    NOT_FORWARDED = (
        "connections cannot be forwarded as they should be: {detail}",
        "`appliance check --here`",
    )
    NOT_SYNCED = (
        "forwarded connections would end with this node: {detail}",
        "`appliance check --here`; on the other nodes, `appliance status`",
    )
    NOT_LINGERING = (
        "virtual IPs move without their connections: {detail}",
        "`appliance why linger-failed`",
    )
    NOT_MIGRATING = (
        "sessions cannot move to another node: {detail}",
        "`appliance why sessions-cannot-move`",
    )
    NODE_DIFFERS = (
        "{subject} runs another configuration {detail}",
        "`appliance fleet push FILE` brings one file to all nodes",
    )
    JUDGED_DIFFERENTLY = ("{detail}", "`appliance why POOL/SERVER` on both nodes has their checks")
    SHARED_IP = ("shared IP {subject} is {detail}", _WHY_SHARED_IP)
    BGP_SESSION = ("the BGP session with {subject} is down{detail}", _WHY_NEIGHBOR)
    BFD_SESSION = (
        "BFD with {subject} is {detail}: it detects a dead node by the hold time only",
        _WHY_NEIGHBOR,
    )
    NOT_ANNOUNCED = (
        "shared IPs cannot be announced as they should be: {detail}",
        "fix that; `appliance bgp status` shows the sessions",
    )
    CONNECTION_ROOM = ("{detail}", connection_room.ADVICE)
    CHECKS_OUTDATED = (
        "{detail}",
        "see the program health: its log, and `{supervisorctl} restart health`",
    )
    DISCOVERY = ("{detail}", "`appliance discover`; its log has the API's answers")
    PROPERTY = ("{detail}", "correct it in the machine's properties: `appliance guest show`")
    PROGRAM = (
        "{subject} is {detail}",
        "see its log; `{supervisorctl} restart {subject}` starts it again",
    )

    def __init__(self, sentence: str, step: str) -> None:
        self.sentence = sentence
        self.step = step


class StatusProblem(str):
    """The sentence of one problem, with its `kind` and its `subject`: a program, a pool, a virtual IP."""

    __slots__ = ("kind", "subject")
    kind: ProblemKind
    subject: str

    def __new__(cls, kind: ProblemKind, subject: str = "", *, detail: str = "") -> Self:
        """Fill in the sentence."""
        made = super().__new__(cls, kind.sentence.format(subject=subject, detail=detail))
        made.kind, made.subject = kind, subject
        return made

    def next_step(self, *, supervisorctl: str) -> str:
        """Return the next step; `supervisorctl` is the command with the socket of this appliance."""
        return self.kind.step.format(subject=self.subject, supervisorctl=supervisorctl)
