"""The bench runs and makes its table; what it measures is not judged here."""

import importlib
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.programs, pytest.mark.needs("haproxy", "nginx", "wrk", "strace")]

_ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(_ROOT))

measures = importlib.import_module("bench.measures")
rounds = importlib.import_module("bench.rounds")
table = importlib.import_module("bench.table")


def test_a_round_fills_every_row_of_the_table():
    """Each measure has a number for both proxies, and a row with their ratio."""
    tiny = measures.Effort(slices=1, bodies=1, idle=50, requests=20)
    results = rounds.measure(rounds.contenders(None), rounds=1, effort=tiny, say=lambda _: None)
    rows = table.markdown(results).splitlines()[2:]
    assert len(rows) == len(results) + 2
    assert any(row.startswith("| connections/s | ") and "0.75" in row for row in rows)


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
