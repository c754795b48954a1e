"""The health checks of one server in sentences: the result of the last one, and the count so far."""

from collections.abc import Iterator, Mapping
from typing import Final

from appliance.core.checks.check_schedule import pause
from appliance.core.status.quantities import duration
from appliance.core.why.explanation import Evidence
from appliance.model.check_results import CheckResult
from appliance.model.messages.quoting import printable, shown
from appliance.model.server_states import HealthVerdict
from appliance.model.snapshot.frontends import Bind
from appliance.model.snapshot.pools import Check, CheckType, Server
from appliance.wire.boards.health_board import ServerHealthRecord

_MEANINGS: Final[Mapping[CheckResult, str]] = {
    CheckResult.L4TOUT: "no TCP connection was made in time: the machine is off, or packets are dropped",
    CheckResult.L4CON: "no TCP connection: it was refused, or there is no way to the address",
    CheckResult.L6TOUT: "TCP works, the TLS handshake did not end in time",
    CheckResult.L6RSP: "TCP works, the TLS handshake failed",
    CheckResult.L7TOUT: "it accepts connections, but sent no complete answer in time",
    CheckResult.L7RSP: "it answers, and the answer is not what the check wants",
    CheckResult.L7STS: "it answers, with an HTTP status that the check does not accept",
}

PASSED: Final = frozenset({CheckResult.L4OK, CheckResult.L6OK, CheckResult.L7OK})
"""Results of checks that found the server fit for traffic."""


def last_check(record: ServerHealthRecord, server: Server, check: Check, evidence: Evidence) -> str:
    """Return the sentence about the last completed check."""
    if record.result is CheckResult.UNCHECKED:
        return f"No check has ended yet ({question(server, check)})."
    result = f"{record.result}/{record.status}" if record.status else str(record.result)
    meaning = _MEANINGS.get(record.result)
    said = f', "{printable(record.detail)}"' if record.detail else ""
    means = f": {meaning}" if meaning else ""
    return (
        f"The last check, {evidence.ago(record.checked_at)}, took {duration(record.duration)} and found"
        f" {result}{said}{means} ({question(server, check)})."
    )


def question(server: Server, check: Check) -> str:
    """Return the requests of a check, and their targets."""
    return "; then ".join(_question(server, each) for each in check.whole)


def _question(server: Server, check: Check) -> str:
    place = Bind(host=check.address or server.host, port=check.port or server.port)
    if check.type is CheckType.COMMAND:
        return f"{' '.join(check.command)} {place.host} {place.port}"
    if check.type in (CheckType.TCP, CheckType.TLS):
        wanted = (each.expect_rstring or each.expect or each.expect_binary for each in check.steps)
        texts = ", ".join(shown(each) for each in wanted if each)
        return f"{check.type} {place}, expects {texts}" if texts else f"{check.type} {place}"
    expected = ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in check.expect)
    body = f" and {check.expect_body!r} in the body" if check.expect_body else ""
    if check.expect_digest:
        body = f" and a body with the digest {check.expect_digest}"
    return f"{check.method} {check.type}://{place}{check.path}, wants {expected}{body}"


def count(record: ServerHealthRecord, check: Check) -> Iterator[str]:
    """Yield how many equal results there were in a row, and how many are required."""
    passed = record.result in PASSED
    if record.result is CheckResult.UNCHECKED:
        return
    if record.verdict is HealthVerdict.DOWN and passed:
        yield (
            f"Its checks pass again, {record.streak} of {check.rise} in a row: it is up when all of them have"
            " passed (rise)."
        )
    elif record.verdict is HealthVerdict.DOWN:
        yield f"{_checks(record.streak)} in a row failed; {check.fall} take a server down (fall)."
    elif not passed:
        yield f"{record.streak} of {check.fall} checks in a row failed; all of them take it down (fall)."


def next_check(record: ServerHealthRecord, check: Check, evidence: Evidence) -> str:
    """Return when the next check is due."""
    passed = record.result in PASSED
    in_question = passed is not (record.verdict is HealthVerdict.UP)
    seconds = pause(check, passed=passed, in_question=in_question)
    left = record.checked_at - record.duration + seconds - evidence.now
    due = f"in {duration(left)}" if left > 0 and record.checked_at else "now"
    return f"the next check is due {due}, another one each {duration(seconds)}"


def _checks(number: int) -> str:
    return "1 check" if number == 1 else f"{number} checks"
