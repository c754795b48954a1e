"""The results as a table of ratios, for the terminal and for bench/README.md."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import median

from bench.rounds import OURS, RIVAL, SPLICING, Results

_BEGIN, _END = "<!-- results -->\n", "<!-- end of results -->\n"
_TARGETS = {
    "connections/s": (">= 0.75", lambda ratio: ratio >= 0.75),
    "requests/s kept alive": (">= 0.85", lambda ratio: ratio >= 0.85),
    "bulk GB/s": (">= 1.0", lambda ratio: ratio >= 1.0),
    "bytes RSS per idle connection": ("<= 1.0", lambda ratio: ratio <= 1.0),
}


def markdown(results: Results) -> str:
    """Return the table: medians of both, and min-median-max of the ratio within a round."""
    lines = [
        "| measure | HAProxy | appliance | ratio | of rounds | first target |",
        "|---|---|---|---|---|---|",
    ]
    lines += [_row(name, by_proxy[RIVAL], by_proxy[OURS]) for name, by_proxy in results.items()]
    lines += [
        _row(f"{name}, HAProxy with splice-auto", by_proxy[SPLICING], by_proxy[OURS])
        for name, by_proxy in results.items()
        if by_proxy.get(SPLICING)
    ]
    return "\n".join(lines) + "\n"


def write(path: Path, text: str) -> None:
    """Replace what stands between the markers of the file."""
    before, _, rest = path.read_text().partition(_BEGIN)
    after = rest.partition(_END)[2]
    path.write_text(f"{before}{_BEGIN}\n{text}\n{_END}{after}")


def _row(name: str, rival: list[float], ours: list[float]) -> str:
    ratios = sorted(_ratios(rival, ours))
    middle = median(ratios) if ratios else float("nan")
    spread = f"[{ratios[0]:.2f}-{ratios[-1]:.2f}]" if ratios else ""
    return (
        f"| {name} | {_number(median(rival))} | {_number(median(ours))} "
        f"| {middle:.2f} {spread} | {len(ratios)} | {_target(name, middle)} |"
    )


def _ratios(rival: Iterable[float], ours: Iterable[float]) -> Iterator[float]:
    # A difference of two noisy times may come out at nothing or less: no ratio can be made of it.
    return (mine / his for his, mine in zip(rival, ours, strict=True) if his > 0)


def _target(name: str, ratio: float) -> str:
    wanted = _TARGETS.get(name)
    if wanted is None:
        return ""
    text, reached = wanted
    return f"{text}: {'reached' if reached(ratio) else 'missed'}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
