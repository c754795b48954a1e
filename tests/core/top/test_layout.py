"""The screen as lines: each view of a real status, at any size, of letters that the terminal has."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.values import boards
from support.values.observations import NOW, observations, supervised
from support.values.snapshots import bind, frontend, group, pool, server, snapshot, virtual_router

from appliance.core.status.assessment import assess
from appliance.core.status.status import ProgramState, Status
from appliance.core.top.keys import Mode
from appliance.core.top.layout import ASCII, UNICODE, Line, Scene, Terminal, lines, report, shown
from appliance.core.top.navigation import ListPosition, ScreenState, Shown
from appliance.core.top.rates import Sample, counters, looked
from appliance.core.top.tables import Order, Style, rate_text, size_text
from appliance.core.top.traffic import error_rate
from appliance.core.top.views import View, column_names, table
from appliance.model.check_results import CheckResult
from appliance.model.end_reasons import EndReason
from appliance.model.server_states import AdminState, HealthVerdict
from appliance.wire.lines.vrrp_status import HeardRouterStatus, RouterStatus, VrrpStatus

pytestmark = pytest.mark.pure

MADE = snapshot(
    number=7,
    cluster="ocp4",
    groups=[
        group(
            frontends=[
                frontend("kube-api", pool="masters", binds=[bind(9445, host="::")], max_connections=10),
                frontend("ready", respond="/ready"),
            ]
        )
    ],
    pools=[
        pool("masters", servers=[server("m0"), server("m1"), server("m2"), server("boot", backup=True)]),
        pool("routers", servers=[server("r0")]),
    ],
    virtual_routers=[virtual_router("api"), virtual_router("ingress"), virtual_router("lost")],
)
VRRP = VrrpStatus(
    routers=(
        RouterStatus(name="api", state="active", since=150.0, priority=100, held=True),
        RouterStatus(
            name="ingress",
            state="backup",
            yielded=True,
            heard=(HeardRouterStatus(peer="10.0.0.2", priority=90, last_heard=NOW, state="active"),),
        ),
    )
)
HEALTH = boards.health_board(
    boards.health("m0", pool="masters"),
    boards.health(
        "m1",
        pool="masters",
        verdict=HealthVerdict.DOWN,
        result=CheckResult.L7STS,
        status=500,
        detail="b\u00f6se \u4e2d\x1b[2J",
    ),
    boards.health("m2", pool="masters", admin=AdminState.MAINT),
    boards.health("r0", pool="routers", verdict=HealthVerdict.DOWN, result=CheckResult.L4CON, status=0),
)


def status(total: int, *, cut: int = 0, current: int = 3) -> Status:
    """Return a status in which so many connections came."""
    worker = boards.worker(
        frontends=(boards.frontend_counters("kube-api", current=current, total=total),),
        servers=(boards.server_counters("m0", pool="masters", current=current, total=total),),
        reasons={EndReason.COMPLETED: total, EndReason.SERVER_ABORT: cut},
    )
    programs = (
        *map(supervised, ("reload", "proxy-api")),
        supervised("health", ProgramState.FATAL, reason="why"),
    )
    found = observations(snapshot=MADE, health=HEALTH, workers=(worker,), vrrp=VRRP, supervised=programs)
    return assess(found, NOW)


def sample(*statuses: Status) -> Sample:
    """Return what is seen at the last of some looks, two seconds apart."""
    rates = None
    for number, each in enumerate(statuses):
        rates = looked(rates, counters(each), 2.0 * number)
    assert rates is not None
    return Sample(status=statuses[-1], rates=rates)


SIGHT = sample(status(1000, cut=2), status(1500, cut=8))


def scene(seen: Sample | None = SIGHT, **state: object) -> Scene:
    """Return what is to be seen."""
    return Scene(
        sample=seen,
        state=ScreenState(**state),
        explain=lambda view, key: (f"{view} {key} is so.", "", f"- {'because ' * 30}"),
        moment=lambda at: f"<{at:g}>",
    )


def text(line: Line) -> str:
    """Return the letters of a line."""
    return "".join(span.text for span in line)


def page(made: Scene, *, width: int = 80, height: int = 24) -> str:
    """Return the screen as text."""
    return "\n".join(map(text, lines(made, Terminal(width=width, height=height))))


def test_the_head():
    """Whether it serves and why not, the sums of all, and who holds the virtual IPs."""
    seen = page(scene(), width=200)
    assert seen.startswith("appliance top  ocp4  configuration 7  <200>\n")
    assert "Serving. 1 of 4 masters is down since <100>: L7STS/500 (m1)." in seen
    assert "sessions 3  new/s 250  errors/s 3.0  queue 2  in/s 2.5kB  out/s 10.0kB  denied/s 0" in seen
    assert "vips: api active, ingress backup (10.0.0.2 is active), lost unknown" in seen
    assert "[3 servers]" in seen
    assert "PAUSED" in page(scene(paused=True))


def test_nothing_is_known_before_the_second_look():
    """Rates are - then; and before the first one there is nothing at all."""
    seen = page(scene(sample(status(7))))
    assert "new/s -  errors/s -" in seen
    assert page(scene(None)).startswith("appliance top: looking")
    assert shown(scene(None), Terminal(width=80, height=24)) == Shown()
    empty = assess(observations(snapshot="no file", workers=(), answers={}, supervised="no"), NOW)
    nothing = page(scene(sample(empty, empty)))
    assert "no configuration" in nothing
    assert "vips:" not in nothing
    assert error_rate(sample(empty, empty)) is None


@pytest.mark.parametrize(
    ("view", "parts"),
    [
        (View.FRONTENDS, ["kube-api", "masters", "250", "answers /ready", "[::]:9445"]),
        (View.POOLS, ["masters", "routers", "roundrobin", "retry/s"]),
        (View.SERVERS, ["masters/m1", "down", "L7STS/500", "maint", "masters/boot (backup)  checking"]),
        (View.CHECKS, ["L4CON", "10s", "b\u00f6se ?\\x1b[2J"]),
        (View.ERRORS, ["server-abort", "error", "3.0", "completed", "no"]),
        (View.VIPS, ["api", "this node", "backup (moved)", "10.0.0.2", "192.0.2.200/24"]),
        (View.PROGRAMS, ["health", "fatal", "why", "proxy-api", "running"]),
    ],
)
def test_views(view: View, parts: list[str]):
    """Each of them shows what it is for; letters that would confuse a terminal are replaced."""
    made = scene(place=ListPosition(view=view))
    seen = "\n".join(map(text, lines(made, Terminal(width=200, height=24, glyphs=UNICODE))))
    assert [each for each in parts if each not in seen] == []


def test_a_full_frontend_and_one_without_ends():
    """What is full stands out."""
    full = sample(status(10, current=10))
    row = table(View.FRONTENDS, full).rows[0]
    assert row.cells[0].style is Style.BAD


def test_a_pool_s_servers():
    """Only those, and the view says whose they are; a pool is that of one frontend, too."""
    seen = page(scene(place=ListPosition(view=View.SERVERS, pool="routers")))
    assert "[3 servers of routers]" in seen
    assert "masters/m0" not in seen
    assert [row.key for row in table(View.FRONTENDS, SIGHT, pool="masters").rows] == ["proxy-api/kube-api"]
    assert [row.key for row in table(View.POOLS, SIGHT, pool="routers").rows] == ["routers"]


def test_sorting_and_filtering():
    """The column has a sign, the rows are in its order, those without the words are left out."""
    orders = {View.SERVERS: Order(column="new_per_second")}
    seen = page(scene(orders=orders, filter="masters"))
    assert "new/sv" in seen
    assert "filter: masters  q quit" in seen
    assert "routers/r0" not in seen
    assert seen.index("masters/m0") < seen.index("masters/m1")
    turned = page(scene(orders={View.SERVERS: Order(column="state", reverse=True)}))
    assert "state" in turned
    assert "filter: mas_" in page(scene(mode=Mode.FILTER, typed="mas"))


def test_texts():
    """The explanation of a row, the help; lines that are too long are folded, and the rest is scrolled to."""
    seen = page(scene(mode=Mode.TEXT, about="masters/m0"))
    assert "servers masters/m0 is so." in seen
    assert "escape back" in seen
    assert "this help" in page(scene(mode=Mode.TEXT))
    below = page(scene(mode=Mode.TEXT, about="masters/m0", first_line=1))
    assert "is so." not in below


def test_rows_below_the_page():
    """The selected one is always seen."""
    made = scene(place=ListPosition(view=View.SERVERS, selected="routers/r0"))
    seen = lines(made, Terminal(width=80, height=9))
    marked = [text(line) for line in seen if any(span.style is Style.SELECTED for span in line)]
    assert [each.split()[0] for each in marked] == ["routers/r0"]
    assert len(marked[0]) == 80


def test_what_keys_refer_to():
    """Rows in their order, the pools that they open, how many fit; of a text its lines."""
    known = shown(scene(place=ListPosition(view=View.POOLS)), Terminal(width=80, height=24))
    assert (known.rows, known.pools) == (("masters", "routers"), {"masters": "masters", "routers": "routers"})
    assert known.columns == column_names(View.POOLS)
    assert known.page == 24 - 5 - 2
    reading = shown(scene(mode=Mode.TEXT, about="x"), Terminal(width=80, height=24))
    assert reading.lines > 3


def test_a_report():
    """Every view that has rows, one below the other, without keys."""
    made = [text(line) for line in report(scene(), SIGHT, tuple(View), 200)]
    assert made[0].startswith("appliance top")
    assert any(each.startswith("reason") for each in made)
    assert not any("q quit" in each for each in made)
    nothing = [text(line) for line in report(scene(filter="no such row"), SIGHT, (View.ERRORS,), 200)]
    assert nothing[-1].startswith("reason")
    empty = sample(assess(observations(snapshot="no file", workers=(), answers={}, supervised="no"), NOW))
    assert len(list(report(scene(empty), empty, (View.ERRORS,), 200))) == 3


@pytest.mark.parametrize(
    ("rate", "said"),
    [(None, "-"), (0.0, "0"), (0.25, "0.2"), (99.94, "99.9"), (1234.0, "1234"), (250_000.0, "250k")],
)
def test_rates_as_text(rate: float | None, said: str):
    """Three digits, or as many as there are."""
    assert rate_text(rate) == said


def test_sizes_as_text():
    """With units of bytes."""
    assert (size_text(None), size_text(0.0), size_text(1234.5)) == ("-", "0B", "1.2kB")


states = st.builds(
    ScreenState,
    place=st.builds(
        ListPosition,
        view=st.sampled_from(View),
        pool=st.none() | st.just("masters"),
        selected=st.none() | st.sampled_from(["masters/m1", "routers", "api"]),
    ),
    mode=st.sampled_from(Mode),
    filter=st.sampled_from(["", "m", "zz"]),
    typed=st.text(max_size=5),
    about=st.none() | st.just("masters/m1"),
    first_line=st.integers(0, 30),
    paused=st.booleans(),
)
terminals = st.builds(
    Terminal, width=st.integers(1, 200), height=st.integers(1, 50), glyphs=st.sampled_from([ASCII, UNICODE])
)


@given(states, terminals)
def test_the_screen_fits_every_terminal(state: ScreenState, terminal: Terminal):
    """As many lines as it has, none wider, and no letter that moves the cursor or is not there."""
    made = replace(scene(), state=state)
    seen = lines(made, terminal)
    assert len(seen) == terminal.height
    for line in seen:
        assert len(text(line)) <= terminal.width
        assert text(line).isprintable()
        assert all(map(terminal.glyphs.encodable, text(line)))
    known = shown(made, terminal)
    assert known.page >= 1
