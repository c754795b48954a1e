"""The exposition, judged by the parsers of prometheus_client."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_open_metrics
from prometheus_client.parser import text_string_to_metric_families as read_text

from appliance.wire.exposition import (
    Exposition,
    Format,
    Histogram,
    Labelled,
    Metric,
    MetricKind,
    encode,
    labels,
    wanted_format,
)

pytestmark = pytest.mark.pure

READERS = {Format.TEXT: read_text, Format.OPEN_METRICS: read_open_metrics}
PROMETHEUS_2 = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
    "application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,"
    "text/plain;version=0.0.4;q=0.2,/;q=0.1"
)
FORMATS = pytest.mark.parametrize("form", Format)
METRICS = (
    Metric(name="up", kind=MetricKind.GAUGE, help="Whether.", samples=[("", 1)]),
    Metric(
        name="bytes_total",
        kind=MetricKind.COUNTER,
        help="Bytes.",
        samples=[(labels(proxy="a", server="s0"), 7), (labels(proxy="b", server="s1"), 0.5)],
    ),
    Metric(
        name="seconds",
        kind=MetricKind.HISTOGRAM,
        help="How long.",
        histograms=[Histogram(labels={"pool": "a"}, bounds=(0.1, 1.0), counts=(3, 0, 2), sum=9.5)],
    ),
)


def understood(
    metrics: Iterable[Metric], form: Format
) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Return what a client of Prometheus understands: values by name and labels."""
    text = encode(metrics, form).decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in READERS[form](text)
        for sample in family.samples
    }


@FORMATS
def test_what_is_written_is_understood(form: Format):
    """Gauges, counters and histograms arrive in both formats, histograms with their sums of classes."""
    pool = ("pool", "a")
    assert understood(METRICS, form) == {
        ("up", ()): 1,
        ("bytes_total", (("proxy", "a"), ("server", "s0"))): 7,
        ("bytes_total", (("proxy", "b"), ("server", "s1"))): 0.5,
        ("seconds_bucket", (("le", "0.1"), pool)): 3,
        ("seconds_bucket", (("le", "1.0"), pool)): 3,
        ("seconds_bucket", (("le", "+Inf"), pool)): 5,
        ("seconds_sum", (pool,)): 9.5,
        ("seconds_count", (pool,)): 5,
    }


@FORMATS
@given(value=st.text(st.characters(codec="utf-8", exclude_characters="\r\x85\u2028\u2029\v\f\x1c\x1d\x1e")))
def test_any_text_can_be_a_label(form: Format, value: str):
    """Quotes, backslashes and ends of lines come back as they were."""
    metric = Metric(name="up", kind=MetricKind.GAUGE, help="Whether.", samples=[(labels(a=value), 1)])
    assert understood([metric], form) == {("up", (("a", value),)): 1}


@FORMATS
def test_what_has_no_sample_is_left_out(form: Format):
    """A head without a sample would be a metric that nobody can look at."""
    empty = Metric(name="nothing", kind=MetricKind.GAUGE, help="Nothing.")
    assert b"nothing" not in encode([empty], form)


@given(
    form=st.sampled_from(Format),
    scrapes=st.lists(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=4), max_size=6),
)
def test_what_is_kept_is_never_old(form: Format, scrapes: list[list[tuple[int, int]]]):
    """Whatever changes from one scrape to the next, each of them says what one alone would say."""
    exposition = Exposition(form)
    for scrape in scrapes:
        metrics = [
            Metric(name=f"m{which}", kind=MetricKind.GAUGE, help="", samples=[("", value)] * value)
            for which, value in scrape
        ]
        assert exposition.encode(metrics) == encode(metrics, form)


def test_the_kinds_are_told():
    """OpenMetrics names a counter without its suffix, and a counter that has none is of no kind to it."""
    odd = Metric(name="odd", kind=MetricKind.COUNTER, help="Odd \\ and\nlong.", samples=[("", 1)])
    text = encode([*METRICS, odd], Format.TEXT).decode()
    other = encode([*METRICS, odd], Format.OPEN_METRICS).decode()

    assert "# TYPE bytes_total counter\n" in text
    assert "# TYPE bytes counter\n" in other
    assert "# TYPE odd counter\n" in text
    assert "# TYPE odd unknown\n" in other
    assert "# HELP odd Odd \\\\ and\\nlong.\n" in text
    assert other.endswith("# EOF\n")
    assert "EOF" not in text


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", Format.TEXT),
        ("*/*", Format.TEXT),
        ("text/plain;version=0.0.4", Format.TEXT),
        ("application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5", Format.OPEN_METRICS),
        ("Application/OpenMetrics-Text", Format.OPEN_METRICS),
        ("application/openmetrics-text;q=0, text/plain", Format.TEXT),
        (";;,;", Format.TEXT),
        (PROMETHEUS_2, Format.OPEN_METRICS),
        (PROMETHEUS_3, Format.OPEN_METRICS),
        ("text/plain;version=0.0.4, application/openmetrics-text;q=0.5", Format.TEXT),
        ("application/openmetrics-text;version=2.0.0", Format.TEXT),
        ("application/openmetrics-text;q=lots, text/plain;q=0.1", Format.TEXT),
    ],
)
def test_the_format_is_the_one_that_is_asked_for(accept: str, form: Format):
    """Prometheus asks for OpenMetrics first; browsers and curl get text."""
    assert wanted_format(accept) is form


def test_labels_and_values_in_lists_of_their_own():
    """They read as pairs, and are equal where both are, to pairs too."""
    found = Labelled(['{a="1"}', '{a="2"}'], [1, 2])

    assert list(found) == [('{a="1"}', 1), ('{a="2"}', 2)]
    assert (found[1], found[:1], len(found)) == (('{a="2"}', 2), [('{a="1"}', 1)], 2)
    assert found == Labelled(['{a="1"}', '{a="2"}'], [1, 2])
    assert found != Labelled(['{a="1"}', '{a="2"}'], [1, 3])
    assert found != Labelled(['{a="1"}', '{a="3"}'], [1, 2])
    assert found == list(found)
    assert hash(found) == hash(tuple(found))
