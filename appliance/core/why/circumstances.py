"""What holds for the whole appliance and may be part of any reason: the running file, stopped programs."""

from collections.abc import Iterator

from appliance.core.checks.stale_verdicts import outdated
from appliance.core.status.pools import health_records
from appliance.core.status.problems import located
from appliance.core.status.status import ProgramState
from appliance.core.why.explanation import Evidence
from appliance.wire.lines.status_answer import ReloadStatus


def circumstances(evidence: Evidence) -> tuple[str, ...]:
    """Return the circumstances of the running configuration."""
    return (*_last_good(evidence), *_refused(evidence))


def _last_good(evidence: Evidence) -> Iterator[str]:
    degraded = evidence.status.degraded
    if degraded is None:
        return
    errors = "; ".join(located(each) for each in degraded.errors)
    yield (
        f"The last good configuration runs{evidence.since(degraded.since)}, not the file, which has errors:"
        f" {errors}. Once they are mended: appliance reload"
    )


def _refused(evidence: Evidence) -> Iterator[str]:
    reload = evidence.observations.answer(ReloadStatus)
    if reload is None or not reload.refused:
        return
    when = f", {evidence.ago(reload.last.at)}," if reload.last else ""
    errors = "; ".join(located(each) for each in reload.refused)
    yield (
        f"The last reload{when} was refused, so that configuration {evidence.snapshot.number} runs on:"
        f" {errors}. {_next_try(reload.again_in)}"
    )


def _next_try(again_in: float | None) -> str:
    if again_in is None:
        return "Once that is mended: appliance reload"
    return f"It is tried again by itself, in {again_in:.0f} s"


def health_circumstances(evidence: Evidence) -> tuple[str, ...]:
    """Return the circumstances of the program that checks: without it the last verdicts hold."""
    return (*_health(evidence), *_stale(evidence))


def _health(evidence: Evidence) -> Iterator[str]:
    for program in evidence.status.programs:
        if program.name == "health" and program.state is not ProgramState.RUNNING:
            state = f"{program.state} ({program.reason})" if program.reason else program.state
            yield f"The program health is {state}: nothing is checked, and the last verdicts hold."


def _stale(evidence: Evidence) -> Iterator[str]:
    records = health_records(evidence.observations)
    yield from (
        f"{each[:1].upper()}{each[1:]}." for each in outdated(evidence.snapshot, records, now=evidence.now)
    )
