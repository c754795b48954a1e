"""The results as a table of ratios, for the terminal and for bench/README.md."""

from collections.abc import Iterable
from pathlib import Path
from statistics import median

from bench.rounds import ANOTHER, COMPILED, OURS, RIVAL, SPLICING, STREAM, Results

_TARGETS = {
    "connections/s": (">= 0.75", lambda ratio: ratio >= 0.75),
    "requests/s kept alive": (">= 0.85", lambda ratio: ratio >= 0.85),
    "bulk GB/s": (">= 1.0", lambda ratio: ratio >= 1.0),
    "bytes RSS per idle connection": ("<= 1.0", lambda ratio: ratio <= 1.0),
}


def markdown(results: Results) -> str:
    """Return the table: the median of each, and median [min-max] of the ratio to HAProxy within a round."""
    others = (OURS, COMPILED, STREAM, ANOTHER)
    ours = [name for name in others if any(name in by_proxy for by_proxy in results.values())]
    head = ["measure", "HAProxy", *(word for name in ours for word in (name, "ratio")), "first target"]
    lines = [_line(head), "|---" * len(head) + "|"]
    lines += [_row(name, by_proxy, RIVAL, ours) for name, by_proxy in results.items()]
    lines += [
        _row(f"{name}, HAProxy with splice-auto", by_proxy, SPLICING, ours)
        for name, by_proxy in results.items()
        if by_proxy.get(SPLICING)
    ]
    return "\n".join(lines) + "\n"


def write(path: Path, section: str, text: str) -> None:
    """Replace what stands between the markers of a section in the file."""
    begin, end = f"<!-- {section} -->\n", f"<!-- end of {section} -->\n"
    before, _, rest = path.read_text().partition(begin)
    path.write_text(f"{before}{begin}\n{text}\n{end}{rest.partition(end)[2]}")


def _row(name: str, by_proxy: dict[str, list[float]], rival: str, ours: list[str]) -> str:
    cells = [name, _number(median(by_proxy[rival]))]
    for each in ours:
        cells += [_number(median(by_proxy[each])), ratio(by_proxy[rival], by_proxy[each])]
    return _line([*cells, _target(name, rival, by_proxy)])


def ratio(rival: list[float], ours: list[float]) -> str:
    """Return median [min-max] of the ratios within a round.

    A difference of two noisy times may come out at nothing or less: no ratio can be made of it.
    """
    if min(*rival, *ours) <= 0:
        return "lost in noise"
    ratios = sorted(mine / theirs for theirs, mine in zip(rival, ours, strict=True))
    return f"{median(ratios):.2f} [{ratios[0]:.2f}-{ratios[-1]:.2f}]"


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _target(name: str, rival: str, by_proxy: dict[str, list[float]]) -> str:
    wanted = _TARGETS.get(name)
    if wanted is None or rival != RIVAL:
        return ""
    text, is_reached = wanted
    middle = median(mine / theirs for theirs, mine in zip(by_proxy[RIVAL], by_proxy[OURS], strict=True))
    return f"{text}: {'reached' if is_reached(middle) else 'missed'}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
