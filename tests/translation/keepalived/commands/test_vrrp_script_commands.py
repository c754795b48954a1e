"""What the command of a check asks: by its words, by its file, or by its name."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.translation.keepalived.commands.check_commands import Recognised
from appliance.translation.keepalived.commands.check_scripts import ScriptQuestion
from appliance.translation.keepalived.commands.vrrp_script_commands import (
    CheckCommand,
    Doubt,
    doubt,
    question,
)
from appliance.translation.keepalived.syntax.words import CommandError, command_words

pytestmark = pytest.mark.pure

PATH = "/etc/keepalived/check.sh"
LIVES = Recognised(kind="program", target="haproxy", haproxy=True)
OWN_WAY = ScriptQuestion(asks=LIVES, in_its_own_way=True)


def asked(
    text: str, content: str | None = None, *, name: str = "chk", proxies: bool = True
) -> tuple[ScriptQuestion | None, Doubt | None]:
    """Return what a command asks, and what is in doubt; `content` is that of each file."""

    def read(path: str) -> bytes:
        if content is None:
            raise FileNotFoundError(path)
        return content.encode()

    command = CheckCommand(text=text, words=command_words(text), name=name)
    return question(command, read, proxies=proxies), doubt(command, read)


def test_words():
    """What the words say needs no file."""
    assert asked("pidof haproxy") == (ScriptQuestion(asks=LIVES), Doubt.NAMED)
    port = Recognised(kind="tcp", target="192.0.2.1:80")
    assert asked("</dev/tcp/192.0.2.1/80") == (ScriptQuestion(asks=port), None)


@pytest.mark.parametrize(
    "text",
    [
        "kill -0 `cat /var/run/haproxy.pid`",
        "/bin/bash -c 'kill -0 $(cat /run/haproxy.pid)'",
        "/usr/bin/timeout -k 1 2 /bin/sh -ec 'echo | socat /run/haproxy.sock -'",
    ],
)
def test_words_of_a_shell(text: str):
    """A text that needs a shell is read as one reads it, also where no shell is named."""
    assert asked(text) == (OWN_WAY, Doubt.NAMED)
    assert asked(text, proxies=False)[0] is None


def test_a_file_that_asks_for_haproxy():
    """Its content decides, and not its name; where we are not in HAProxy's place, it may be at work."""
    content = "#!/bin/bash\nif [ $(pgrep -c haproxy) -eq 0 ]; then exit 1; fi\n"
    assert asked(PATH, content) == (OWN_WAY, Doubt.NAMED)
    assert asked(PATH, content, proxies=False)[0] is None
    assert asked("/check_haproxy.sh", "#!/bin/sh\nexec /bin/asks-all\n") == (None, Doubt.NAMED)
    assert asked(PATH, "#!/bin/sh\n/bin/asks haproxy\n") == (None, Doubt.NAMED)
    assert asked(PATH, "#!/bin/sh\n/bin/asks\n") == (None, None)


@pytest.mark.parametrize(
    ("text", "name", "known"),
    [
        ("/usr/libexec/keepalived/haproxy_check.sh", "chk", True),
        (PATH, "check_HAProxy", True),
        (PATH, "check_apiserver", False),
    ],
)
def test_a_file_that_cannot_be_read(text: str, name: str, known: bool):  # noqa: FBT001  # a row of the table
    """It is taken at its name, or at that of the check."""
    found, why = asked(text, name=name)
    assert why is Doubt.UNREAD
    assert found == (ScriptQuestion(asks=LIVES, by_name=True) if known else None)
    assert asked(text, name=name, proxies=False)[0] is None


_PIECES = (
    *(
        "curl -f http://localhost",
        "pidof haproxy",
        "timeout",
        "1",
        "sh -c",
        "exit 1",
        "errorExit",
        "() {",
        "}",
    ),
    *("if ip addr", "fi", "then", "!", "|", "||", "&&", ";", "\n", "$(", ")", "`", '"', "'", "A=", "$A", "<"),
    *("/dev/tcp/a/1", "[ -e /x ]", "grep haproxy", "env", "cat", "#", "\\"),
)


@given(st.lists(st.sampled_from(_PIECES)).map(" ".join))
def test_any_script(text: str):
    """Any text is understood or not, as a command and as a script; nothing else comes of it."""
    with suppress(CommandError):
        asked(text)
    asked(PATH, f"#!/bin/sh\n{text}")
