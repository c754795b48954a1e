"""Checks that talk: `steps`, against servers that say what a test wants, and beside a real HAProxy."""

import contextlib
from pathlib import Path
from typing import Final

import pytest
from support.health.side_by_side import judged
from support.peers.talking_server import TalkingServer
from support.processes.waiting import wait_until
from support.values import certificates, snapshots

from appliance.core.checks.check_outcome import CheckOutcome
from appliance.model.check_results import CheckResult
from appliance.model.snapshot.pools import CheckStep, SendProxy
from appliance.net.probing.probe import Probe
from appliance.net.probing.tls_contexts import TlsContexts

pytestmark = pytest.mark.sockets

TIMEOUT: Final = 10.0
"""Seconds: for who answers at once, whatever else the machine does."""
REDIS: Final = (
    CheckStep(send="PING\r\n", expect="+PONG"),
    CheckStep(send="INFO replication\r\n", expect="role:master", comment="the master"),
    CheckStep(send="QUIT\r\n"),
)


def probe(port: int, *steps: CheckStep, kind: str = "tcp", **changes: object) -> CheckOutcome:
    """Return the outcome of one check."""
    settings = {"steps": steps, "timeout": TIMEOUT, **changes}
    return Probe(snapshots.check(kind, **settings), "127.0.0.1", port, TlsContexts()).run()


def test_a_redis_that_is_the_master_passes():
    """Each question gets its answer, in however many segments; the last word arrives."""
    answers = {
        b"PING": b"+PO|NG\r\n",
        b"INFO": b"$20\r\n# Replication|\r\nrole:master\r\n",
        b"QUIT": b"+OK\r\n",
    }
    with TalkingServer(b"", answers) as redis:
        outcome = probe(redis.port, *REDIS)
        wait_until(lambda: redis.heard[-1] in {"end", "reset"}, what="the check has gone")

    assert (outcome.result, outcome.detail) == (CheckResult.L7OK, "")
    assert redis.heard[:3] == ["PING\r\n", "INFO replication\r\n", "QUIT\r\n"]


def test_a_replica_is_named_as_what_it_is():
    """It answers, so it is not out of reach; what it said instead is told, and when the time was up."""
    with TalkingServer(b"", {b"PING": b"+PONG\r\n", b"INFO": b"role:slave\r\n"}) as redis:
        outcome = probe(redis.port, *REDIS, timeout=2.0)

    assert (outcome.result, outcome.unreachable) == (CheckResult.L7RSP, False)
    assert outcome.detail == "step 2 (the master): no `role:master`, 12 bytes came: `role:slave` within 2 s"


def test_a_server_that_says_nothing_has_no_answer():
    """After the greeting was waited for in vain it is out of reach."""
    with TalkingServer(b"", {}) as silent:
        outcome = probe(silent.port, CheckStep(expect="220"), timeout=0.3)

    assert (outcome.result, outcome.detail) == (CheckResult.L7TOUT, "no answer within 0.3 s")
    assert outcome.unreachable


def test_a_server_that_closes_without_a_word():
    """That is an answer, and a bad one."""
    with TalkingServer(b"", {b"PING": None}) as redis:
        outcome = probe(redis.port, *REDIS)

    assert (outcome.result, outcome.detail) == (CheckResult.L7RSP, "step 1: nothing came")


def test_a_reset_before_any_answer_is_told():
    """Nothing was said that could be judged."""
    with TalkingServer(b"", {b"PING": None}, resets=True) as redis:
        outcome = probe(redis.port, *REDIS)

    assert (outcome.result, outcome.detail) == (CheckResult.L7RSP, "connection reset by peer")


def test_an_endless_answer_is_judged_by_its_beginning():
    """A server that never stops holds the check no longer than its limits."""
    with TalkingServer(b"x" * 200_000, {}) as flood:
        outcome = probe(flood.port, CheckStep(expect="ok"))

    assert outcome.result is CheckResult.L7RSP
    assert outcome.detail.startswith("step 1: no `ok`, 16384 bytes came: `xxxx")
    assert outcome.duration < TIMEOUT


def test_single_bytes_come_to_an_end():
    """A server that sends byte after byte has used up its reads before its bytes; what came is judged."""
    with TalkingServer(b"", {b"go": b"|".join([b"x"] * 40)}) as slow:
        outcome = probe(slow.port, CheckStep(send="go", expect="xy"), timeout=0.4)

    assert outcome.result is CheckResult.L7RSP
    assert "no `xy`" in outcome.detail


def test_it_talks_within_tls(tmp_path: Path):
    """With `type: tls` the same is said in TLS; a server without TLS has no handshake."""
    files = certificates.issue(tmp_path, "localhost", "127.0.0.1")
    answers: dict[bytes, bytes | None] = {b"PING": b"+PONG\r\n", b"INFO": b"role:master\r\n"}
    with TalkingServer(b"", answers, files=files) as redis:
        outcome = probe(redis.port, *REDIS, kind="tls", verify=str(files.authority), sni="localhost")
        wait_until(lambda: len(redis.heard) > 3, what="the check has gone")
    with TalkingServer(b"", {}) as plain:
        silent = probe(plain.port, *REDIS, kind="tls", timeout=0.3)

    assert outcome.result is CheckResult.L7OK
    assert redis.heard[:3] == ["PING\r\n", "INFO replication\r\n", "QUIT\r\n"]
    assert silent.result is CheckResult.L6TOUT


def test_the_proxy_header_comes_first():
    """A server that wants it has it before the first question."""
    # The header and the question are one segment or two.
    answers: dict[bytes, bytes | None] = {b"PROXY UNKNOWN\r\nPING": b"+PONG\r\n", b"PING": b"+PONG\r\n"}
    with TalkingServer(b"", answers) as redis:
        outcome = probe(redis.port, REDIS[0], send_proxy=SendProxy.V1)

    assert outcome.passed
    assert "".join(redis.heard).startswith("PROXY UNKNOWN\r\nPING\r\n")


MYSQL: Final = b"\x4a\x00\x00\x00\x0a10.11.6-MariaDB\x00" + b"\x01" * 57
MYSQL_OK: Final = b"\x07\x00\x00\x02\x00\x00\x00\x02\x00\x00\x00"
MYSQL_ERROR: Final = b"\x45\x00\x00\x02\xff\x15\x04#28000Access denied" + b" " * 50
MYSQL_BARS: Final = b"\x45\x00\x00\x00\xff\x6a\x04Host is blocked" + b" " * 51
SCRAM: Final = b"R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0"
NO_ROLE: Final = b"E\0\0\0\x20SFATAL\0C28000\0Mno role\0\0"
BIND: Final = b"0\x0c\x02\x01\x01a\x07\x0a\x01%c\x04\x00\x04\x00"
LONG_BIND: Final = b"0\x84\x00\x00\x00\x10\x02\x01\x01a\x84\x00\x00\x00\x07\x0a\x01%c\x04\x00\x04\x00"
ANY: Final = b""
"""What a question begins with that is any question."""

CASES: Final[dict[str, tuple[str, bytes, dict[bytes, bytes | None]]]] = {
    # the lines of the section, what the server greets with, and what it answers
    "redis": ("option redis-check", b"", {b"*1": b"+PONG\r\n"}),
    "redis-in-pieces": ("option redis-check", b"", {b"*1": b"+PO|NG|\r\n"}),
    "redis-wants-a-password": ("option redis-check", b"", {b"*1": b"-NOAUTH Authentication required.\r\n"}),
    "redis-is-silent": ("option redis-check", b"", {}),
    "redis-closes": ("option redis-check", b"", {b"*1": None}),
    "mysql": ("option mysql-check user haproxy", MYSQL, {b")": MYSQL_OK}),
    "mysql-of-old": ("option mysql-check user haproxy pre-41", MYSQL, {b"\x0e": MYSQL_OK}),
    "mysql-refuses": ("option mysql-check user haproxy", MYSQL, {b")": MYSQL_ERROR}),
    "mysql-greets": ("option mysql-check", MYSQL, {}),
    "mysql-bars-the-host": ("option mysql-check", MYSQL_BARS, {}),
    "mysql-is-silent": ("option mysql-check user haproxy", b"", {}),
    "postgres-trusts": ("option pgsql-check user haproxy", b"", {ANY: b"R\0\0\0\x08\0\0\0\0S\0\0\0\x04"}),
    "postgres-scram": ("option pgsql-check user haproxy", b"", {ANY: SCRAM}),
    "postgres-refuses": ("option pgsql-check user haproxy", b"", {ANY: NO_ROLE}),
    "smtp": ("option smtpchk", b"220 mail ready\r\n", {b"HELO": b"250 hello\r\n", b"QUIT": b"221 bye\r\n"}),
    "smtp-ehlo": (
        "option smtpchk EHLO lb.example.com",
        b"220 mail ready\r\n",
        {b"EHLO lb.example.com\r\n": b"250-mail\r\n|250 HELP\r\n", b"QUIT": b"221 bye\r\n"},
    ),
    "smtp-is-busy": ("option smtpchk", b"421 busy\r\n", {}),
    "smtp-refuses": ("option smtpchk", b"220 mail\r\n", {b"HELO": b"550 who are you\r\n"}),
    "ldap": ("option ldap-check", b"", {b"0": BIND % 0}),
    "ldap-in-long-form": ("option ldap-check", b"", {b"0": LONG_BIND % 0}),
    "ldap-refuses": ("option ldap-check", b"", {b"0": BIND % 48}),
    "ldap-is-something-else": ("option ldap-check", b"", {b"0": b"HTTP/1.1 400 Bad Request\r\n\r\n"}),
    "master": (
        r"""option tcp-check
  tcp-check connect
  tcp-check comment the\ password
  tcp-check send "AUTH s3cret\r\n"
  tcp-check expect string +OK
  tcp-check send PING\r\n
  tcp-check expect string +PONG comment it\ speaks
  tcp-check send info\ replication\r\n
  tcp-check expect string role:master
  tcp-check send QUIT\r\n
  tcp-check expect string +OK""",
        b"",
        {b"AUTH": b"+OK\r\n", b"PING": b"+PONG\r\n", b"info": b"role:master\r\n", b"QUIT": b"+OK\r\n"},
    ),
    "replica": (
        r"""option tcp-check
  tcp-check send info\ replication\r\n
  tcp-check expect rstring role:(master|primary)""",
        b"",
        {b"info": b"$10\r\nrole:slave\r\n"},
    ),
    "binary": (
        "option tcp-check\n  tcp-check send-binary 50494e470d0a\n  tcp-check expect binary 2b504F4e47",
        b"",
        {b"PING": b"+PONG\r\n"},
    ),
    "banner": ("option tcp-check\n  tcp-check expect rstring ^220[\\ -]", b"220-a\r\n", {}),
    "other-banner": ("option tcp-check\n  tcp-check expect rstring ^220[\\ -]", b"554 no\r\n", {}),
    "several": (
        "option tcp-check\n  tcp-check expect string a\n  tcp-check expect string b",
        b"x",
        {},
    ),
    "both": ("option tcp-check\n  tcp-check expect string a\n  tcp-check expect string b", b"ba", {}),
    "must-not": ("option tcp-check\n  tcp-check expect min-recv 3 ! string bad", b"good", {}),
    "does-though": ("option tcp-check\n  tcp-check expect min-recv 3 ! rstring ^b[ad]+", b"bad", {}),
    "too-few": ("option tcp-check\n  tcp-check expect min-recv 9 ! rstring ^b[ad]+", b"good", {}),
    "never-ends": ("option tcp-check\n  tcp-check expect ! string bad", b"good", {}),
    "must-not-and-closes": (
        "option tcp-check\n  tcp-check send x\n  tcp-check expect ! string bad",
        b"",
        {b"x": None},
    ),
    "says-only": ("option tcp-check\n  tcp-check send QUIT\\r\\n", b"", {}),
    "too-much": ("option tcp-check\n  tcp-check expect string ok", b"x" * 40_000 + b"ok", {}),
}
WAITED_FOR: Final = {
    "redis-is-silent",
    "mysql-is-silent",
    "replica",
    "other-banner",
    "several",
    "too-few",
    "never-ends",
}
"""Who does not pass by keeping silent, or by what may still become right: until the timeout."""


@pytest.mark.programs
@pytest.mark.needs("haproxy")
@pytest.mark.promise("docs/concepts.md", "a check that talks judges as HAProxy's does")
def test_real_haproxy_judges_the_same():
    """Of every server, good, bad, silent or slow, HAProxy and a check made of the same file think alike."""
    with contextlib.ExitStack() as stack:
        greeters = {
            name: stack.enter_context(TalkingServer(greeting, answers))
            for name, (_, greeting, answers) in CASES.items()
        }
        checks = {
            name: (CASES[name][0] + "\n  timeout check 500ms" * (name in WAITED_FOR), each.port)
            for name, each in greeters.items()
        }
        found = judged(checks, timeout=f"{TIMEOUT:g}s")

    assert found.ours == found.theirs
