"""Lines of a file: limits, conditional blocks, messages, and a word on each."""

import pytest
from support.translation.haproxy_files import NO_FILES, TIMES, read

from appliance.translation.haproxy.reader import translate
from appliance.translation.translation import Outcome

pytestmark = pytest.mark.pure


def lines_of(data: bytes) -> list[str]:
    """Return what is refused of bytes, by line."""
    found = translate(data, source="haproxy.cfg", environment={}, read=NO_FILES)
    return [f"{each.place.line}: {each.reason}" for each in found.refused]


def test_a_block_that_holds():
    """Its lines hold, those of the other branches are left out, and the conditions are kept."""
    found = read(
        "global\n.if defined(A)\n  maxconn 10\n.elif 1\n  bogus\n.else\n  bogus\n.endif\n"
        f"{TIMES}listen l\n  bind *:1\n  server s 10.0.0.1:1\n",
        A="",
    )
    assert found.refused == []
    assert found.config.defaults.max_connections == 10
    assert [each.outcome for each in found.lines(".")] == [Outcome.KEPT] * 4
    assert [each.reason for each in found.lines("bogus")] == [
        "its conditional block (`.if`) does not apply"
    ] * 2


def test_blocks_within_blocks():
    """Within a block that does not hold nothing is asked, whatever is written."""
    inner = (
        "  .if feature(X)\n    bogus\n  .elif bogus\n  .else\n    bogus\n  .warning no\n  .bogus\n  .endif\n"
    )
    found = read(f"global\n.if 0\n{inner}.elif 1\n  maxconn 1\n.endif\n")
    assert found.refused == []
    assert found.outcome(".warning") is Outcome.IGNORED
    assert found.outcome(".bogus") is Outcome.IGNORED
    assert found.outcome("maxconn") is Outcome.KEPT


def test_a_condition_that_cannot_be_known():
    """It is refused where it stands, and none of its branches holds."""
    found = read("global\n.if feature(QUIC)\n  bogus\n.else\n  bogus\n.endif\n")
    assert found.refused == [
        "2:1: only HAProxy itself can evaluate `feature(QUIC)`: keep one branch, without `.if`"
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (".if 1\n", ["1:1: this `.if` has no `.endif`"]),
        (".endif\n", ["1:1: `.endif` without an `.if` before it"]),
        (".if 1\n.else\n.elif 1\n.endif\n", ["3:1: `.elif` after `.else`"]),
        (".if bogus\n.endif\n", ["1:1: `bogus` cannot be parsed"]),
        ('global\n  .alert "not here"\n', ["2:3: HAProxy refuses to start at this `.alert`: `not here`"]),
        (".bogus\n", ["1:1: `.bogus` comes before the first section"]),
        ("[scope]\n", ["1:1: scopes in brackets are for HAProxy's filter files"]),
        ('global\n  "a\n', ['2:3: the quote " is not closed']),
        (f"global\n  {'x' * 16384}\n", ["2:1: the line is longer than 16384 characters"]),
    ],
)
def test_what_is_refused(text: str, expected: list[str]):
    """Each fault has its line and column."""
    assert read(text).refused == expected


def test_messages_are_for_people():
    """They are ignored, with a word."""
    found = read("global\n.notice hello\n.warning hello\n.diag hello\n")
    assert [each.outcome for each in found.lines(".")] == [Outcome.IGNORED] * 3


def test_the_last_line_must_end():
    """A file without a last line break may be cut short; HAProxy refuses it too."""
    found = lines_of(b"global\n  maxconn 1")
    assert found == ["2: the last line has no line break: the file may be truncated"]
    assert lines_of(b"global\n# the end") == ["2: the last line has no line break: the file may be truncated"]
    assert lines_of(b"global\n  ") == []


def test_bytes_that_are_no_text():
    """In a comment they do no harm; a word with them is refused."""
    found = lines_of(b"# caf\xe9\nglobal\n  description caf\xe9 # \xe9\n")
    assert found == ["3: the word is not UTF-8"]


def test_a_huge_file():
    """It is refused as a whole."""
    [refused] = lines_of(b"# \n" * 400_000)
    assert refused == "1: the file is larger than 1 MiB"


def test_an_empty_first_word():
    """HAProxy takes such a line for an empty one."""
    found = read('global\n  "" maxconn 1\n  ""\n')
    assert [each.outcome for each in found.found.lines] == [Outcome.KEPT, Outcome.IGNORED, Outcome.IGNORED]


def test_passwords_are_not_shown_again():
    """The report is for many eyes."""
    text = "userlist u\n  user a insecure-password secret\nlisten s\n  stats auth admin:secret\n"
    shown = " ".join(each.text for each in read(text).found.lines)
    assert "secret" not in shown
    assert "admin:***" in shown


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        (r'tcp-check send "AUTH s3cret\r\n"', 'tcp-check send "AUTH***'),
        (r"tcp-check send AUTH\ s3cret\r\n", "tcp-check send AUTH***"),
        (r'tcp-check send "AUTH\x20s3cret\r\n"', 'tcp-check send "AUTH***'),
        (r"tcp-check send *2\r\n$4\r\nAUTH\r\n$6\r\ns3cret\r\n", "tcp-check send ***"),
        ("tcp-check send-lf 'auth %[str(s3cret)]'", "tcp-check send-lf 'auth***"),
        ("tcp-check send-binary 4155544820733363726574", "tcp-check send-binary ***"),
        (r'http-check send hdr Authorization "Basic s3cret"', "http-check send hdr Authorization***"),
        (r"option httpchk GET / HTTP/1.1\r\nCookie:\ s3cret", r"option httpchk GET / HTTP/1.1\r\nCookie:***"),
        ("setenv REDIS_PASS s3cret", "setenv REDIS_PASS ***"),
        (r"tcp-check send PING\r\n", r"tcp-check send PING\r\n"),
        (r'tcp-check send "PING\r\n" comment "is it up"', r'tcp-check send "PING\r\n" comment "is it up"'),
        ("tcp-check expect string role:master", "tcp-check expect string role:master"),
    ],
)
def test_what_a_check_says_to_be_let_in_is_not_shown(line: str, shown: str):
    """Of what is sent the first word is shown, which says what it is; whatever follows may be a password."""
    found = read(f"backend b\n  {line}\n").found.lines
    assert {each.text for each in found if each.place.line == 2} == {shown}
    assert "s3cret" not in str(found)


def test_long_lines_are_shown_short():
    """The report has one line for each."""
    [found] = read(f"global\n  description {'x ' * 30}{'y' * 300}\n").lines("description")
    assert len(found.text) == 203


def test_a_line_has_many_faults():
    """Some of them are shown."""
    found = read(f"backend b\n  server s 10.0.0.1:1{' bogus{}' * 50}\n".replace("{}", "x"))
    assert len(found.refused) == 20
