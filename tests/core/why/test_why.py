"""Each situation of a server, a pool, a frontend and the whole appliance is explained by its cause."""

from dataclasses import replace

import pytest
from msgspec import structs
from support.values import boards
from support.values.observations import NOW, observations, supervised
from support.values.snapshots import check, frontend, group, pool, redirect, server, snapshot

from appliance.core.status.assessment import assess
from appliance.core.status.observations import Observations
from appliance.core.status.status import DegradedStart, ProgramState
from appliance.core.why.explanation import Decider, Evidence, Explanation, Kind
from appliance.core.why.subjects import Subject, meant
from appliance.core.why.why import explain
from appliance.model.check_results import CheckResult
from appliance.model.server_states import AdminState, HealthVerdict
from appliance.model.server_weights import operator_weight
from appliance.model.snapshot.discovery import Source, SourceKind
from appliance.model.snapshot.frontends import ClientRoute, SniRoute
from appliance.model.snapshot.pools import CheckInit, CheckStep, CheckType, Discovery, OnDown, OnUp, SendProxy
from appliance.wire.lines.control import AnswerProblem
from appliance.wire.lines.discovery_status import DiscoveryStatus, FoundStatus, SourceStatus
from appliance.wire.lines.forward_status import ForwardStatus, SyncStatus
from appliance.wire.lines.redirect_status import RedirectedFrontend, RedirectStatus
from appliance.wire.lines.reload_status import LastReload, ReloadStatus
from appliance.wire.lines.status_answer import StatusAnswer

pytestmark = pytest.mark.pure

DOWN = {"verdict": HealthVerdict.DOWN, "result": CheckResult.L4CON, "status": 0, "detail": "refused"}
TALKING = check(
    steps=(
        *(CheckStep(expect_rstring="^220"), CheckStep(send="AUTH s3cret", expect="+PONG")),
        *(CheckStep(expect_binary="2b"), CheckStep(send="QUIT")),
    )
)
HTTPS = check(CheckType.HTTPS, path="/readyz", expect=((200, 200), (400, 499)), expect_body="ok")


def evidence(found: Observations) -> Evidence:
    """Return the evidence that observations of a snapshot are."""
    assert not isinstance(found.snapshot, str)
    status = assess(found, NOW)
    return Evidence(
        snapshot=found.snapshot,
        observations=found,
        status=status,
        now=NOW,
        moment=lambda at: f"<{at:g}>",
        supervisorctl="supervisorctl -s S",
    )


def why(text: str, found: Observations, kind: Kind | None = None) -> Explanation:
    """Return the explanation of the one thing that a text means."""
    about = evidence(found)
    [subject] = meant(text, about.snapshot, kind=kind)
    return explain(subject, about)


def told(explanation: Explanation) -> str:
    """Return all that is told, in one text."""
    changes = (f"{each.text}: {each.command}" for each in explanation.changes)
    return " | ".join((explanation.answer, *explanation.reasons, *explanation.circumstances, *changes))


def seen(*records: object, configured: object = None, **changes: object) -> Observations:
    """Return what is found of one pool with what `health` wrote of its servers."""
    servers = (server(check=check()),)
    made = configured or pool(servers=servers)
    health = boards.health_board(*records)  # type: ignore[arg-type]  # records
    fields = {"snapshot": snapshot(number=7, pools=[made]), "health": health, **changes}
    return observations(**fields)


SERVERS = [
    # what health wrote, what the file says of server and pool; state, decider, a part of what is told
    ({}, {}, {}, "up", Decider.CHECK, "is up since <100> (1m 40s): its health checks pass."),
    (DOWN, {}, {}, "down", Decider.CHECK, 'found L4CON, "refused": no TCP connection'),
    (DOWN | {"streak": 1}, {}, {}, "down", Decider.CHECK, "1 check in a row failed; 3 take a server down"),
    (DOWN, {}, {}, "down", Decider.CHECK, "2 more passed checks in a row take it up; the next check is due"),
    (
        {"verdict": HealthVerdict.DOWN, "result": CheckResult.L7STS, "status": 500, "detail": "boom\n"},
        {"check": HTTPS},
        {},
        "down",
        Decider.CHECK,
        r'L7STS/500, "boom\n": it answers, with an HTTP status that the check does not accept',
    ),
    (
        DOWN,
        {"check": HTTPS},
        {},
        "down",
        Decider.CHECK,
        "(GET https://127.0.0.1:8080/readyz, wants 200, 400-499 and 'ok' in the body).",
    ),
    (
        DOWN,
        {"check": TALKING},
        {},
        "down",
        Decider.CHECK,
        "(tcp 127.0.0.1:8080, expects `^220`, `+PONG`, `2b`).",
    ),
    (
        DOWN,
        {"check": check(CheckType.COMMAND, command=("/bin/check", "-v"))},
        {},
        "down",
        Decider.CHECK,
        "(/bin/check -v 127.0.0.1 8080).",
    ),
    (
        DOWN,
        {"check": replace(check(), also=(("b", replace(HTTPS, expect_digest="0a" * 16)),))},
        {},
        "down",
        Decider.CHECK,
        "then GET https://127.0.0.1:8080/readyz, wants 200, 400-499 and a body with the digest 0a0a",
    ),
    (
        {"verdict": HealthVerdict.DOWN, "streak": 1, "status": 0, "checked_at": NOW},
        {},
        {},
        "down",
        Decider.CHECK,
        "Its checks pass again, 1 of 2 in a row",
    ),
    (
        {"verdict": HealthVerdict.DOWN, "streak": 1, "checked_at": NOW},
        {},
        {},
        "down",
        Decider.CHECK,
        "1 more passed checks in a row take it up; the next check is due in 496ms, another one each 500ms",
    ),
    (
        {"result": CheckResult.L4TOUT, "streak": 2},
        {},
        {},
        "up",
        Decider.CHECK,
        "2 of 3 checks in a row failed",
    ),
    (DOWN | {"unreachable": True}, {}, {"on_down": OnDown.AUTO}, "down", Decider.CHECK, "were closed"),
    (DOWN, {}, {"on_down": OnDown.AUTO}, "down", Decider.CHECK, "It still answers"),
    (DOWN, {}, {"on_down": OnDown.CLOSE_SESSIONS}, "down", Decider.CHECK, "(on_down: close-sessions)"),
    (DOWN, {}, {"panic": 0.5}, "down", Decider.CHECK, "too few servers of pool are up (panic)"),
    (
        DOWN | {"admin": AdminState.DRAIN},
        {},
        {},
        "down",
        Decider.CHECK,
        "Besides, an operator has put it into drain",
    ),
    (
        {"verdict": HealthVerdict.UNKNOWN, "result": CheckResult.UNCHECKED},
        {},
        {},
        "checking",
        Decider.NOBODY,
        "No check has ended yet (tcp 127.0.0.1:8080).",
    ),
    (
        {"verdict": HealthVerdict.DOWN, "result": CheckResult.UNCHECKED},
        {"check": check(init=CheckInit.DOWN)},
        {},
        "down",
        Decider.CONFIGURATION,
        "presumed until a check has ended (init: down)",
    ),
    (
        {"result": CheckResult.UNCHECKED},
        {"check": check(init=CheckInit.UP)},
        {},
        "up",
        Decider.CONFIGURATION,
        "presumed until a check has ended (init: up)",
    ),
    ({}, {"check": None}, {}, "up", Decider.CONFIGURATION, "it is not checked"),
    ({"weight": 0.0}, {"weight": 0}, {}, "up", Decider.CONFIGURATION, "Its weight is 0"),
    (
        {"weight": 0.0, "operator_weight": operator_weight("0")},
        {},
        {},
        "up",
        Decider.OPERATOR,
        "An operator has set its weight to 0, where the configuration says 1",
    ),
    (
        {"weight": 2.0, "operator_weight": operator_weight("50%")},
        {"weight": 4},
        {},
        "up",
        Decider.CHECK,
        "appliance weight pool/server-0 100%",
    ),
    (
        {"weight": 2.0},
        {"weight": 8},
        {"slow_start": 60.0},
        "up",
        Decider.CHECK,
        "gets 25% of its share so far, the whole of it in about 45s (slow_start: 1m)",
    ),
    ({}, {"backup": True}, {}, "up", Decider.CHECK, "It is a backup, and is used now"),
    (
        {"admin": AdminState.MAINT},
        {},
        {},
        "maint",
        Decider.OPERATOR,
        "appliance ready pool/server-0",
    ),
    (
        {"admin": AdminState.DRAIN},
        {},
        {},
        "drain",
        Decider.OPERATOR,
        "0 sessions on it continue; its checks pass, and are made as ever.",
    ),
    ({"host": ""}, {}, {}, "up", Decider.CHECK, "The name 127.0.0.1 has no address at present"),
    ({}, {}, {}, "up", Decider.CHECK, "appliance drain pool/server-0"),
]


@pytest.mark.parametrize(("health", "configured", "of_pool", "state", "decided_by", "part"), SERVERS)
def test_servers(  # the columns of a table
    health: dict[str, object],
    configured: dict[str, object],
    of_pool: dict[str, object],
    state: str,
    decided_by: Decider,
    part: str,
):
    """The state, who decided it, and the sentence that names the cause."""
    made = pool(servers=(server(**{"check": check(), **configured}),), **of_pool)
    found = why("server-0", seen(boards.health(**health), configured=made))
    assert (found.kind, found.name) == (Kind.SERVER, "pool/server-0")
    assert (found.state, found.decided_by) == (state, decided_by)
    assert part in told(found)


def counted(**changes: object) -> tuple[object, ...]:
    """Return a worker that has counted these of the server, and of the frontend as many connections."""
    of_server = structs.replace(boards.server_counters(), queued=0, **changes)
    of_frontend = boards.frontend_counters(current=of_server.current, total=of_server.total)
    return (boards.worker(servers=(of_server,), frontends=(of_frontend,)),)


def test_sessions_on_a_server_in_drain():
    """They are counted, and the command that ends them is named."""
    about = seen(boards.health(admin=AdminState.DRAIN), workers=counted(current=1))
    found = told(why("server-0", about))
    assert "1 session on it continues" in found
    assert "appliance sessions kill --server pool/server-0" in found


def test_a_server_at_its_limit():
    """Further connections wait."""
    made = pool(servers=(server(check=check(), max_connections=4),))
    about = seen(boards.health(), configured=made, workers=counted(current=4))
    assert "It has 4 of 4 connections" in told(why("server-0", about))


def test_connects_of_clients_that_failed():
    """They are told as what they are: a reason for a check, never a verdict."""
    about = seen(boards.health(**DOWN), workers=counted(failed=9))
    assert "9 connects for clients failed so far. 1 in a row have" in told(why("server-0", about))


def test_a_backup_that_is_not_used():
    """Another server is up."""
    made = pool(servers=(server("a"), server("b", backup=True)))
    about = seen(boards.health("a"), boards.health("b"), configured=made)
    assert "only while no other server of the pool is up" in told(why("b", about))


@pytest.mark.parametrize(
    ("all_backups", "used", "told_of_second"),
    [(False, "(b)", "stands behind b: only the first backup"), (True, "(b, c)", "is used now")],
)
def test_several_backups(all_backups: bool, used: str, told_of_second: str):  # noqa: FBT001  # a parameter
    """The pool names those that are used; one that is up and is not used says behind which it stands."""
    spares = (server("b", backup=True), server("c", backup=True))
    made = pool(servers=(server("a", check=check()), *spares), all_backups=all_backups)
    records = boards.health("a", **DOWN), boards.health("b"), boards.health("c")
    about = seen(*records, configured=made)
    assert f"serves by its backups {used}" in why("pool", about).answer
    assert "is used now" in told(why("b", about))
    assert told_of_second in told(why("c", about))
    assert "its sessions are closed" not in told(why("b", about))


def test_a_backup_whose_sessions_end_when_another_server_is_back():
    """Its pool's `on_up` is named; a server that is no backup has nothing of it."""
    made = pool(servers=(server("a"), server("b", backup=True)), on_up=OnUp.CLOSE_BACKUP_SESSIONS)
    about = seen(boards.health("a"), boards.health("b"), configured=made)
    assert "its sessions are closed (on_up: close-backup-sessions)" in told(why("b", about))
    assert "on_up" not in told(why("a", about))


def test_a_backup_without_weight():
    """While nothing else of the pool is up either, nobody is named that it would stand behind."""
    made = pool(servers=(server("a", check=check()), server("b", backup=True)))
    about = seen(boards.health("a", **DOWN), boards.health("b", weight=0.0), configured=made)
    assert "while no other server of the pool is up" in told(why("b", about))


def test_a_server_without_a_record():
    """`health` has written nothing of it, or nothing runs at all."""
    found = why("server-0", seen(configured=pool(servers=(server(check=check()),))))
    assert (found.state, found.decided_by) == ("checking", Decider.NOBODY)
    assert found.changes[0].command == "appliance status"
    nothing = seen(boards.health(), supervised="no", answers={}, workers=())
    assert why("server-0", nothing).answer.startswith("There is no state")


def test_found_servers():
    """A server of the cluster names its source, and whether the API shows it still."""
    source = Source(kind=SourceKind.NODES, what="edge=")
    resource = SourceStatus(
        name="nodes edge=",
        pools=("pool",),
        servers=(FoundStatus(name="other", host="h", held=False), FoundStatus(name="a", host="h", held=True)),
        seen_at=None,
        changed_at=None,
        hold="too many vanished",
        proxy=False,
        resources=(),
    )
    discovery = DiscoveryStatus(
        program="discover",
        pid=1,
        started_at=1.0,
        snapshot=7,
        pending=None,
        installed=True,
        sources=(replace(resource, name="routers", pools=(), hold=None), resource),
        problems=(),
        not_kept={},
    )
    template = server("", check=None)
    wanted = Discovery(
        source=source, port=80, template=template, send_proxy=SendProxy.NONE, check_follows=False
    )
    made = pool(servers=(server("a", discovered=True), server("b", discovered=True)), discover=wanted)
    about = seen(boards.health("a"), boards.health("b"), configured=made, discover=discovery)
    assert "found in the cluster (nodes edge=, which no longer lists it: it is kept" in told(why("a", about))
    assert "It was found in the cluster." in told(why("b", about))
    whole = why("pool", about)
    assert "are kept: too many vanished" in told(whole)
    empty = why("pool", seen(configured=replace(made, servers=()), discover=discovery))
    assert (empty.state, empty.decided_by) == ("empty", Decider.DISCOVERY)
    assert "none of its servers is known" in empty.answer
    nobody = why("pool", seen(configured=replace(made, servers=(), discover=None)))
    assert nobody.decided_by is Decider.CONFIGURATION


TWO = pool(servers=(server("a"), server("b", backup=True)))
UP, OUT = {}, {"admin": AdminState.MAINT, "since": 150.0}
POOLS = [
    (TWO, UP, UP, "serving", Decider.CHECK, "pool serves: 2 of 2 servers of pool are up."),
    (TWO, OUT, UP, "on-backups", Decider.OPERATOR, "appliance ready pool/a"),
    (TWO, DOWN, OUT, "empty", Decider.CHECK, "appliance why pool/a"),
    (TWO, OUT, OUT, "empty", Decider.OPERATOR, "clients are turned away"),
    (
        pool(servers=(server("a", check=check()), server("b", check=check()))),
        {"verdict": HealthVerdict.UNKNOWN, "result": CheckResult.UNCHECKED},
        OUT,
        "waiting",
        Decider.NOBODY,
        "the first checks of its servers have not ended",
    ),
    (
        pool(servers=(server("a", check=check()), server("b", check=check())), panic=0.9),
        DOWN,
        UP,
        "panic",
        Decider.CHECK,
        "only 1 of 2 servers of pool are up (panic: 90%)",
    ),
    (
        pool(servers=(server("a", weight=0), server("b"))),
        {"weight": 0.0},
        UP,
        "serving",
        Decider.CHECK,
        "No new connections by their weight of 0: pool/a.",
    ),
]


@pytest.mark.parametrize(("made", "a", "b", "state", "decided_by", "part"), POOLS)
def test_pools(made: object, a: object, b: object, state: str, decided_by: Decider, part: str):  # columns
    """Which servers take connections, and what would change it."""
    about = seen(boards.health("a", **a), boards.health("b", **b), configured=made)  # type: ignore[arg-type]  # columns
    found = why("pool", about)
    assert (found.state, found.decided_by) == (state, decided_by)
    assert part in told(found)
    assert found.since == (150.0 if (state, a) == ("on-backups", OUT) else found.since)
    assert "Used by: frontend." in found.reasons


def test_a_pool_that_nobody_uses_and_one_that_many_wait_for():
    """Both are told, and how many more servers there are than are told one by one."""
    names = [f"s{number}" for number in range(12)]
    made = pool("spare", servers=tuple(map(server, names)), max_queue=5)
    away = [boards.health(each, pool="spare", **DOWN) for each in names]
    queued = boards.worker(servers=(boards.server_counters("s0", pool="spare"),))
    found = told(why("spare", seen(*away, configured=made, workers=(queued,))))
    assert "No frontend uses it" in found
    assert "2 of 5 connections wait for a server" in found
    assert "2 more are not up either" in found
    unbound = seen(*away, configured=replace(made, max_queue=0), workers=(queued,))
    assert "2 connections wait for a server" in told(why("spare", unbound))


IN_USE = AnswerProblem(
    message="127.0.0.1:1: address in use by nginx (42)", path="api.frontends.frontend.bind", line=3
)
OTHER = AnswerProblem(message="unknown key", path="pools.x.y")


def answers(
    *refused: AnswerProblem, last: LastReload | None = None, again_in: float | None = None
) -> dict[str, StatusAnswer]:
    """Return what programs answer after a reload that met these problems."""
    good = StatusAnswer(pid=77, started_at=150.0, snapshot=7)
    bad = ReloadStatus(pid=77, started_at=150.0, snapshot=7, refused=refused, last=last, again_in=again_in)
    return {"reload": bad, "health": good, "proxy-api": good}


FRONTENDS = [
    ({}, "serving", Decider.CONFIGURATION, "it listens on 127.0.0.1:9445 and sends its connections to pool"),
    (
        {"failures": {"proxy-api": "127.0.0.1:9445: address in use by nginx (42)"}, "workers": ()},
        "not-listening",
        Decider.OTHER_PROGRAM,
        "supervisorctl -s S restart proxy-api",
    ),
    ({"workers": ()}, "not-listening", Decider.PROGRAM, "none of its workers accepts connections"),
    (
        {"answers": answers(OTHER, IN_USE)},
        "serving-as-before",
        Decider.OTHER_PROGRAM,
        "the file wants cannot be had: line 3: api.frontends.frontend.bind: 127.0.0.1:1: address in use",
    ),
    (
        {"answers": answers(OTHER)},
        "serving",
        Decider.CONFIGURATION,
        "that configuration 7 runs on: pools.x.y",
    ),
    (
        {"answers": answers(OTHER, last=LastReload(at=190.0, ok=False))},
        "serving",
        Decider.CONFIGURATION,
        "The last reload, 10s ago, was refused",
    ),
    (
        {"answers": answers(OTHER, again_in=4.2)},
        "serving",
        Decider.CONFIGURATION,
        "pools.x.y: unknown key. It is tried again by itself, in 4 s",
    ),
    (
        {"workers": counted(current=1000, total=1500)},
        "full",
        Decider.LIMIT,
        "1000 of 1000 connections (max_connections)",
    ),
    (
        {"degraded": DegradedStart(since=150.0, errors=(OTHER,))},
        "serving",
        Decider.CONFIGURATION,
        "The last good configuration runs since <150> (50s), not the file, which has errors: pools.x.y",
    ),
    (
        {"health": boards.health_board(boards.health(**DOWN))},
        "no-server",
        Decider.CHECK,
        "closes them: pool is",
    ),
    ({"workers": counted(total=3)}, "serving", Decider.CONFIGURATION, "2 connections got no server."),
]


@pytest.mark.parametrize(("changes", "state", "decided_by", "part"), FRONTENDS)
def test_frontends(changes: dict[str, object], state: str, decided_by: Decider, part: str):
    """Whether it takes connections, and what is in its way."""
    found = why("frontend", seen(boards.health(), **changes))
    assert (found.kind, found.name, found.state, found.decided_by) == (
        Kind.FRONTEND,
        "frontend",
        state,
        decided_by,
    )
    assert part in told(found)


def test_a_frontend_of_a_program_that_nobody_knows():
    """Neither supervisord nor the program itself tells of it."""
    about = seen(boards.health(), supervised=(), answers={}, workers=())
    assert "proxy-api is gone" in why("frontend", about).answer


def test_a_frontend_with_more_than_one_pool():
    """All of its pools are named, and which of them takes those without such a name."""
    routed = frontend(sni=(SniRoute(names=("a",), pool="other"), SniRoute(regex="b", pool="third")))
    pools = [pool(name, servers=(server(),)) for name in ("pool", "other", "third")]
    about = seen(
        boards.health(), snapshot=snapshot(number=7, groups=[group(frontends=[routed])], pools=pools)
    )
    found = why("frontend", about)
    assert "sends its connections to pool, and by server name to other or third" in found.answer
    both = replace(routed, clients=(ClientRoute(networks=("10.0.0.0/8",), pool="third"),))
    about = replace(about, snapshot=replace(about.snapshot, groups=(group(frontends=[both]),)))
    told_both = "to pool, and by client network to third, and by server name to other or third"
    assert told_both in why("frontend", about).answer


def test_a_frontend_that_answers_itself():
    """With `needs` it says no while that pool is empty, without it always yes."""
    answering = frontend(respond="/monitor", needs="pool", allow=("10.0.0.0/8",), deny=("10.1.0.0/16",))
    made = snapshot(
        number=7, groups=[group(frontends=[answering])], pools=[pool(servers=(server(check=check()),))]
    )
    empty = seen(boards.health(**DOWN), snapshot=made, workers=counted(total=1))
    assert "answers /monitor with 503" in why("frontend", empty).answer
    assert "1 connections were refused by its list `allow and deny`." in told(why("frontend", empty))
    alone = snapshot(number=7, groups=[group(frontends=[frontend(respond="/ready")])], pools=[])
    assert "answers /ready" in why("frontend", seen(snapshot=alone)).answer


@pytest.mark.parametrize("reason", ["", "nft failed"])
def test_a_frontend_that_takes_another_program_s_connections(reason: str):
    """The redirect is told with its state."""
    made = frontend("kube", redirect=redirect())
    redirected = RedirectedFrontend(name="api/kube", state="failed", since=150.0, reason=reason)
    other = replace(redirected, name="api/other")
    about = seen(
        boards.health(),
        snapshot=snapshot(
            number=7,
            groups=[group(frontends=[made, frontend("other", redirect=redirect())])],
            pools=[pool(servers=(server(),))],
        ),
        redirect=RedirectStatus(redirects=(redirected, other)),
    )
    why_failed = f": {reason}" if reason else ""
    assert why("kube", about).reasons[-1] == (
        "New connections to 10.0.0.200:6443, where another program listens, are to come here too; that is"
        f" failed since <150> (50s){why_failed}."
    )


@pytest.mark.parametrize(
    ("answer", "told_so"),
    [
        (
            ForwardStatus(sync=SyncStatus(state="synced", since=150.0)),
            "learn its connections (`sync`): synced",
        ),
        (
            ForwardStatus(sync=SyncStatus(state="alone")),
            "would end with this node (`sync`): nothing is received",
        ),
        (ForwardStatus(), ""),
        (None, ""),
    ],
)
def test_whether_connections_of_a_frontend_survive_their_node(answer: ForwardStatus | None, told_so: str):
    """With `sync`, as far as the program `forward` says it."""
    made = snapshot(
        number=7,
        groups=[group(frontends=[frontend("kube", sync=True)])],
        pools=[pool(servers=(server(),))],
    )
    found = told(why("kube", seen(boards.health(), snapshot=made, forward=answer)))
    assert told_so in found
    assert ("(`sync`)" in found) is bool(told_so)


def test_a_health_that_does_not_run():
    """The last verdicts hold, which is told with every server and pool, and how old they are."""
    programs = (supervised("reload"), supervised("proxy-api"))
    gone = (*programs, supervised("health", ProgramState.FATAL, reason="exit status 3"))
    found = told(why("server-0", seen(boards.health(checked_at=1.0), supervised=gone)))
    assert "The program health is fatal (exit status 3): nothing is checked" in found
    assert "Checks are outdated, and their last verdicts hold" in found
    stopped = (*programs, supervised("health", ProgramState.STOPPED))
    assert "health is stopped: nothing is checked" in told(
        why("pool", seen(boards.health(), supervised=stopped))
    )


def test_subjects_have_a_label():
    """A server is called by pool and name."""
    assert Subject(kind=Kind.SERVER, name="a", pool="p").label == "p/a"
    assert Subject(kind=Kind.FRONTEND, name="f", group="api").label == "f"
