"""Metrics for Prometheus: its text format 0.0.4, and OpenMetrics 1.0.0 for clients that ask for it.

prometheus_client writes the same bytes thirty times slower, at 3 microseconds a sample: 200 ms for the sixty
samples of each of a thousand servers. The tests check this output with its parsers.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate
from typing import Final, overload

Sample = tuple[str, float]
"""Labels as `labels` returns them, and a value."""

_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_HELP_ESCAPES: Final = str.maketrans({"\\": r"\\", "\n": r"\n"})
_TOTAL: Final = "_total"


class Labelled(Sequence[Sample]):
    """Samples as a list of labels and one of values, which are compared faster than pairs are made."""

    def __init__(self, labels: Sequence[str], values: Sequence[float]) -> None:
        self._labels = labels
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    @overload
    def __getitem__(self, at: int) -> Sample: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Sample]: ...
    def __getitem__(self, at: int | slice) -> Sample | Sequence[Sample]:
        """Return one pair, or some."""
        return list(self)[at]

    def __iter__(self) -> Iterator[Sample]:
        return zip(self._labels, self._values, strict=True)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Labelled):
            return self._values == other._values and self._labels == other._labels
        return list(self) == other

    def __hash__(self) -> int:
        return hash(tuple(self))


class MetricKind(StrEnum):
    """Our kinds of metrics, by their names in both formats."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Format(StrEnum):
    """A format by its media type."""

    TEXT = "text/plain; version=0.0.4; charset=utf-8"
    OPEN_METRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


_FORMATS: Final = {
    **{("application/openmetrics-text", version): Format.OPEN_METRICS for version in ("", "0.0.1", "1.0.0")},
    **{("text/plain", version): Format.TEXT for version in ("", "0.0.4")},
}
_WEIGHT: Final = re.compile(r"0(\.[0-9]{0,3})?|1(\.0{0,3})?", re.ASCII)
_MOST_RANGES: Final = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """One histogram of a metric. `counts` are not cumulative; the last class has no upper bound."""

    labels: Mapping[str, str]
    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    sum: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric with its samples, or its histograms. A counter's name has its `_total` here."""

    name: str
    kind: MetricKind
    help: str
    samples: Sequence[Sample] = ()
    histograms: Sequence[Histogram] = ()


def labels(**given: str) -> str:
    """Return labels in the form of a sample, in this order; `""` for a sample without any."""
    inside = ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in given.items())
    return f"{{{inside}}}"


def gauge(name: str, about: str, samples: Sequence[Sample]) -> Metric:
    """Return a gauge."""
    return Metric(name=name, kind=MetricKind.GAUGE, help=about, samples=samples)


def counter(name: str, about: str, samples: Sequence[Sample]) -> Metric:
    """Return a counter, with `_total` appended to its name."""
    return Metric(name=f"{name}{_TOTAL}", kind=MetricKind.COUNTER, help=about, samples=samples)


class Exposition:
    """Writes metrics repeatedly; the text of a metric is rewritten only if the metric has changed.

    A thousand servers have sixty metrics, most of them unchanged since the last scrape: comparing their
    samples takes a tenth of the time of writing them.
    """

    def __init__(self, form: Format) -> None:
        self._form = form
        self._written: dict[str, tuple[Metric, bytes]] = {}

    def encode(self, metrics: Iterable[Metric]) -> bytes:
        """Return the whole exposition, without metrics that have no sample."""
        before, self._written = self._written, {}
        texts = []
        for metric in metrics:
            kept = before.get(metric.name)
            text = kept[1] if kept is not None and kept[0] == metric else _text(metric, self._form)
            self._written[metric.name] = metric, text
            texts.append(text)
        if self._form is Format.OPEN_METRICS:
            texts.append(b"# EOF\n")
        return b"".join(texts)


def encode(metrics: Iterable[Metric], form: Format) -> bytes:
    """Return the whole exposition, once."""
    return Exposition(form).encode(metrics)


def _text(metric: Metric, form: Format) -> bytes:
    if not metric.samples and not metric.histograms:
        return b""
    name = metric.name
    lines = [*_head(metric, form), *[f"{name}{given} {value}\n" for given, value in metric.samples]]
    for each in metric.histograms:
        lines += _histogram(name, each)
    return "".join(lines).encode()


def wanted_format(accept: str) -> Format:
    """Return the format that an Accept header prefers (RFC 9110 section 12.5.1); text on a tie.

    Prometheus asks for OpenMetrics of versions 1.0.0 and 0.0.1, and with less weight for text of 0.0.4.
    Formats and versions that we do not have are ignored.
    """
    weights = dict.fromkeys(Format, 0.0)
    for each in accept.split(",")[:_MOST_RANGES]:
        kind, *parameters = (part.strip().lower() for part in each.split(";"))
        given = dict(part.partition("=")[::2] for part in parameters)
        form = _FORMATS.get((kind, given.get("version", "")))
        if form is not None:
            weights[form] = max(weights[form], _weight(given.get("q", "1")))
    return Format.OPEN_METRICS if weights[Format.OPEN_METRICS] > weights[Format.TEXT] else Format.TEXT


def _weight(text: str) -> float:
    """Return a `q`; an invalid one counts as 0, which is not acceptable."""
    return float(text) if _WEIGHT.fullmatch(text) else 0.0


def _head(metric: Metric, form: Format) -> Iterator[str]:
    name, kind = metric.name, metric.kind.value
    if form is Format.OPEN_METRICS and metric.kind is MetricKind.COUNTER:
        # OpenMetrics names a counter without its suffix, and requires the suffix in its samples.
        name, kind = (name.removesuffix(_TOTAL), kind) if name.endswith(_TOTAL) else (name, "unknown")
    yield f"# HELP {name} {metric.help.translate(_HELP_ESCAPES)}\n"
    yield f"# TYPE {name} {kind}\n"


def _histogram(name: str, histogram: Histogram) -> Iterator[str]:
    totals = list(accumulate(histogram.counts))
    for bound, total in zip((*map(str, histogram.bounds), "+Inf"), totals, strict=True):
        yield f"{name}_bucket{labels(**histogram.labels, le=bound)} {total}\n"
    given = labels(**histogram.labels)
    yield f"{name}_sum{given} {histogram.sum}\n{name}_count{given} {totals[-1]}\n"
