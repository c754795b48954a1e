"""A server's HTTP answer to a check: how much is read, and the result.

The order is that of HAProxy's rules `http-check expect status` and `http-check expect string`: an unexpected
status is L7STS, whatever the body; a body without the text is L7RSP (configuration.txt, http-check expect,
error-status). The text counts as soon as it arrives, even if the rest of the body never does.

This also holds if the check keeps its connection (`reuse`): the next check reads the rest of the answer when
it begins.
"""

import hashlib
from contextlib import suppress

from appliance.model.check_results import CheckResult
from appliance.model.messages.quoting import shown
from appliance.model.snapshot.pools import Check
from appliance.net.probing.peer import Stream
from appliance.wire.http import http_response
from appliance.wire.http.failed_checks import failed_checks
from appliance.wire.http.http_response import ResponseError, StatusLine
from appliance.wire.http.response_body import BODY_LIMIT, DIGEST_LIMIT, ResponseBody

Judgement = tuple[CheckResult, int, str]
"""The result, the status, and a text: what the server answered or what is missing."""


def answer_to(check: Check) -> ResponseBody:
    """Return a new answer to a check, for as much of the body as the check needs."""
    return ResponseBody(check.method, limit=DIGEST_LIMIT if check.expect_digest else BODY_LIMIT)


def judged_answer(stream: Stream, check: Check, answer: ResponseBody) -> Judgement:
    """Read the body of `answer` too, and judge it; raises ResponseError, FloodError and OSError."""
    if check.expect_digest:
        return _by_digest(stream, check, answer)
    if check.expect_body is None:
        line, received = status_line(stream)
        if check.reuse:
            with suppress(ResponseError):  # an error in the body matters to the next check
                answer.feed(received)
        return _with_failed_checks(_by_status(line, check), received, check)
    return _by_body(stream, check, answer, wanted=check.expect_body)


def _with_failed_checks(judgement: Judgement, received: bytes, check: Check) -> Judgement:
    """Add which of a server's own checks failed, if its bad answer names them; reads nothing more."""
    result, status, reason = judgement
    names = failed_checks(received, check.method) if result is CheckResult.L7STS else ()
    return (result, status, f"{', '.join(names)} failed: {reason}") if names else judgement


def _by_status(line: StatusLine, check: Check) -> Judgement:
    passed = any(low <= line.status <= high for low, high in check.expect)
    return CheckResult.L7OK if passed else CheckResult.L7STS, line.status, line.reason


def _by_body(stream: Stream, check: Check, answer: ResponseBody, *, wanted: str) -> Judgement:
    text = wanted.encode()
    received, judgement = 0, None
    while not answer.ended and (data := stream.receive()):
        received += len(data)
        answer.feed(data)
        if judgement is None and answer.line is not None:
            judgement = _by_status(answer.line, check)
        if judgement and (judgement[0] is CheckResult.L7STS or text in answer.body):
            return judgement
    if judgement is None:
        raise ResponseError(f"closed after {received} bytes, before a status line")
    missing = f"no {shown(wanted)} in {len(answer.body)} bytes of body" if answer.body else "no body"
    return CheckResult.L7RSP, judgement[1], missing


def _by_digest(stream: Stream, check: Check, answer: ResponseBody) -> Judgement:
    """Judge the whole body: its end is awaited, as it is part of the digest."""
    received = 0
    while not answer.ended and (data := stream.receive()):
        received += len(data)
        answer.feed(data)
    if answer.line is None:
        raise ResponseError(f"closed after {received} bytes, before a status line")
    judgement = _by_status(answer.line, check)
    found = hashlib.md5(answer.body, usedforsecurity=False).hexdigest()
    if judgement[0] is CheckResult.L7STS:
        return judgement
    if found == check.expect_digest and (check.expect_body or "").encode() in answer.body:
        return judgement
    return CheckResult.L7RSP, judgement[1], f"{len(answer.body)} bytes of body with the digest {found}"


def status_line(stream: Stream) -> tuple[StatusLine, bytes]:
    """Return the status line, and all bytes until then; raises ResponseError, FloodError and OSError."""
    received = b""
    while True:
        data = stream.receive()
        if not data:  # the end of the stream; interim answers (1xx, RFC 9110 s.15.2) are no status line yet
            raise ResponseError(f"closed after {len(received)} bytes, before a status line")
        received += data
        line = http_response.decode(received)
        if isinstance(line, StatusLine):
            return line, received
