"""The bench runs and makes its table; what it measures is not judged here."""

import importlib
import sys
from pathlib import Path

import pytest
from support.vrrp.vip_client import Outage, Probe

_STREAM = "/usr/lib/nginx/modules/ngx_stream_module.so"

pytestmark = [
    pytest.mark.programs,
    pytest.mark.needs("haproxy", "nginx", _STREAM, "wrk", "strace"),
    pytest.mark.slow("builds or measures"),
]

_ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(_ROOT))

held = importlib.import_module("bench.held")
listeners = importlib.import_module("bench.listeners")
failover = importlib.import_module("bench.failover")
measures = importlib.import_module("bench.measures")
reload = importlib.import_module("bench.reload")
rounds = importlib.import_module("bench.rounds")
table = importlib.import_module("bench.table")
whole = importlib.import_module("bench.whole")


def test_a_round_fills_every_row_of_the_table():
    """Each measure has a number for each proxy, and a row with their ratios to HAProxy."""
    tiny = measures.Effort(slices=1, bodies=1, idle=50, requests=20)
    results = rounds.measure(rounds.contenders(None), rounds=1, effort=tiny, say=lambda _: None)
    rows = table.markdown(results).splitlines()[2:]
    assert len(rows) == len(results) + 2
    assert any(row.startswith("| connections/s | ") and "0.75" in row for row in rows)


def test_a_reload_fills_its_table():
    """Ours has a row for each measure, and HAProxy's old process is never gone."""
    rows = reload.markdown(
        reload.measure(sessions=60, rounds=1, package=None, say=lambda _: None)
    ).splitlines()
    assert rows[0] == "| measure | haproxy | appliance |"
    assert rows[2] == "| open sessions | 60.0 | 60.0 |"
    assert rows[-1].startswith("| ms until the old process is gone | - | ")


def test_the_whole_appliance_fills_its_table():
    """Ours has a number for each measure, and HAProxy one for each but those of workers and reloads."""
    rows = whole.markdown(whole.measure(rounds=1, package=None, seconds=0.1, say=lambda _: None)).splitlines()
    assert rows[0] == "| measure | HAProxy, keepalived | appliance |"
    assert rows[2].startswith("| MB PSS of all programs | ")
    assert [row.split("|")[1].strip() for row in rows if " - " in row] == [
        "ms CPU per second at rest, one worker",
        "ms of a reload that changes a weight",
        "ms of a reload that needs new workers",
        "MB private to one more worker",
        "MB PSS of all programs, 16 workers",
    ]


def test_connections_are_held():
    """Each proxy holds them all, and has a number for memory and processor time."""
    starts = rounds.contenders(None)
    results = held.measure(starts, rounds=1, connections=20, seconds=0.1, processes=2, say=lambda _: None)
    assert {tuple(by_proxy) for by_proxy in results.values()} == {tuple(starts)}
    assert table.markdown(results).splitlines()[2].startswith("| MB RSS of 20 held | ")


def test_kinds_of_listeners_are_compared():
    """A reload loses none of the connections in a shared listener's queue, and each measure has its row."""
    rows = listeners.measure(
        None, rounds=1, effort=measures.Effort(slices=1), counts=(2,), tracing=False, say=lambda _: None
    )
    assert {tuple(sorted(by_kind)) for by_kind in rows.values()} == {
        tuple(sorted((listeners.OWN, listeners.KEPT, listeners.SHARED)))
    }
    (lost,) = (by_kind for (what, _), by_kind in rows.items() if what.startswith("lost of 200"))
    assert lost[listeners.SHARED] == lost[listeners.KEPT] == [0]
    assert len(listeners.markdown(rows).splitlines()) == len(rows) + 2


def test_a_ratio_is_taken_within_a_round():
    """The ratio is the median of the rounds' ratios, with the least and the greatest."""
    assert table.ratio([1.0, 10.0, 4.0], [2.0, 10.0, 2.0]) == "1.00 [0.50-2.00]"


def test_no_ratio_is_made_of_noise():
    """Where a difference of times is not positive there is no ratio to show."""
    assert table.ratio([-1.0], [2.0]) == "lost in noise"


def test_a_section_is_replaced_between_its_markers(tmp_path: Path):
    """Writing a section twice leaves one copy of it, and the rest as it was."""
    page = tmp_path / "README.md"
    page.write_text("before\n<!-- results -->\nold\n<!-- end of results -->\nafter\n")
    table.write(page, "results", "new\n")
    table.write(page, "results", "new\n")
    assert page.read_text() == "before\n<!-- results -->\n\nnew\n\n<!-- end of results -->\nafter\n"


def _outage(answers: str) -> Outage:
    """Return what a client saw that probed each millisecond: + is answered, - is lost."""
    return Outage(
        probes=tuple(
            Probe(sent=number / 1000, answered=number / 1000, by="low" if each == "+" else "")
            for number, each in enumerate(answers)
        )
    )


def test_a_gap_is_from_the_first_lost_probe_to_the_next_answer():
    """The longest run of lost probes counts, and nothing lost is no gap."""
    outage = _outage("+-+--+")
    assert (outage.lost, outage.gap) == (3, pytest.approx(0.002))
    assert _outage("++").gap == 0.0


def test_the_table_of_failover_compares_medians():
    """A row shows both contenders, their ratio, and whether the target is reached."""
    timers = failover.ALL_TIMERS[0]
    results = {
        (timers, failover.Event.CRASH): {
            failover.RIVAL: [_outage("+--+")],
            failover.OURS: [_outage("+-+")],
        },
        (timers, failover.Event.MOVE): {failover.OURS: [_outage("++")]},
    }
    crash, move = failover.markdown(results).splitlines()[2:]
    assert crash.startswith("| v2, 1000 ms | crash | 2.0-2.0-2.0 | 2-2-2 | 1.0-1.0-1.0 | 1-1-1 | 0.50 |")
    assert crash.endswith("reached |")
    assert move.endswith("none lost: reached |")
