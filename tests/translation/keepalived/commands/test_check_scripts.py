"""Which scripts do no more than one look of our own."""

import pytest

from appliance.translation.keepalived.commands.check_commands import Recognised
from appliance.translation.keepalived.commands.check_scripts import (
    MARKER,
    ScriptQuestion,
    recognised_script,
    shell_text,
)
from appliance.translation.keepalived.commands.shell_commands import LONGEST_SCRIPT
from appliance.translation.keepalived.syntax.words import command_words

pytestmark = pytest.mark.pure

PATH = "/etc/keepalived/check.sh"
KUBEADM = """\
#!/bin/sh

errorExit() {
    echo "*** $*" 1>&2
    exit 1
}

curl -sfk --max-time 2 https://localhost:6443/healthz -o /dev/null || errorExit "Error GET"
"""
OPENSHIFT = f"""\
#!/bin/bash
set -e
/usr/bin/curl -o /dev/null -kLfs http://localhost:9444/haproxy_ready && [ -e {MARKER} ]
"""


OLDER = """\
#!/bin/sh

errorExit() {
    echo "*** $*" 1>&2
    exit 1
}
export ADDRESS=192.0.2.1

curl --silent --max-time 2 --insecure https://localhost:6443/ -o /dev/null || errorExit "Error GET"
if ip addr | grep -q 192.0.2.1; then
    curl --silent --max-time 2 --insecure https://192.0.2.1:6443/ -o /dev/null || errorExit "Error GET"
fi
"""
WITH_VARIABLES = """\
#!/usr/bin/env bash
VIP="192.0.2.1"
PORT=6443
curl -k --connect-timeout 2 -m 2 https://localhost:${PORT}/ -o /dev/null 2>&1
if [ $? -ne 0 ]; then
  exit 1
fi
export RETRIES=3
if ip -4 addr show dev eth0 | grep -q "$VIP"; then
  curl -k -m 2 https://$VIP:$PORT/ -o /dev/null
  if [ $? -ne 0 ]; then
    exit 1
  fi
fi
exit 0
"""


def found(content: str | bytes | OSError, command: str = PATH) -> ScriptQuestion | None:
    """Return what a script of this content asks."""

    def read(path: str) -> bytes:
        assert path == PATH
        if isinstance(content, OSError):
            raise content
        return content.encode() if isinstance(content, str) else content

    text = shell_text(command_words(command), read)
    return recognised_script(text) if text is not None else None


def http(url: str, **more: object) -> Recognised:
    """Return a check of a URL."""
    return Recognised(kind="http", target=url, **more)  # type: ignore[arg-type]  # keywords of the dataclass


@pytest.mark.parametrize(
    ("content", "question"),
    [
        (KUBEADM, ScriptQuestion(asks=http("https://localhost:6443/healthz", timeout="2"))),
        (OPENSHIFT, ScriptQuestion(asks=http("http://localhost:9444/haproxy_ready"), marked=True)),
        (
            "#!/bin/sh\npidof haproxy\nexit $?\n",
            ScriptQuestion(asks=Recognised(kind="program", target="haproxy", haproxy=True)),
        ),
        (
            "#!/bin/sh\nif ! curl -sfk https://localhost:6443/; then\n  exit 1\nfi\n",
            ScriptQuestion(asks=http("https://localhost:6443/")),
        ),
        (
            "#!/bin/bash\nexec 3<>/dev/tcp/127.0.0.1/6443 || exit 1\n",
            ScriptQuestion(asks=Recognised(kind="tcp", target="127.0.0.1:6443")),
        ),
    ],
)
def test_known_scripts(content: str, question: ScriptQuestion):
    """Kubeadm's asks one URL, OpenShift's one URL and a file that says that the redirect is there."""
    assert found(content) == question


@pytest.mark.parametrize("content", [OLDER, WITH_VARIABLES])
def test_what_is_asked_where_the_virtual_ip_is_held(content: str):
    """Kubeadm's older form asks by the virtual IP too, where it is here: that is left out, and told."""
    asks = http("https://localhost:6443/", timeout="2", any_status=True)
    assert found(content) == ScriptQuestion(asks=asks, while_held=True)


@pytest.mark.parametrize(
    "command",
    [
        f"/bin/sh {PATH}",
        f"/bin/bash -x {PATH} haproxy",
        f"/usr/bin/env bash {PATH}",
        f"/usr/bin/timeout -k 1 2 {PATH}",
    ],
)
def test_commands_that_run_a_script(command: str):
    """The script is found behind its interpreter, env(1) and timeout(1)."""
    assert found(KUBEADM, command) == found(KUBEADM)


@pytest.mark.parametrize("command", ["sh -c", "sh", "timeout", "check.sh", "sh -x check.sh"])
def test_commands_that_name_no_script(command: str):
    """A command without an absolute path has no text to read."""
    assert found(KUBEADM, command) is None


def test_a_file_that_is_not_there():
    """Whoever asks learns that it cannot be read."""
    with pytest.raises(FileNotFoundError):
        found(FileNotFoundError())


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x7fELF",
        "#!/usr/bin/python3\n",
        "curl -f http://localhost\n",
        "#!/bin/sh\n",
        "#!/bin/sh\ncurl -f http://localhost\npidof haproxy\n",
        "#!/bin/sh\nrm -rf /var/x\n",
        "#!/bin/sh\nif curl -f http://localhost; then\nexit 0\nfi\n",
        "#!/bin/sh\n" + "#" * LONGEST_SCRIPT,
        b"#!/bin/sh\n\xff\xfe\n",
        "#!/bin/sh\nSTATUS=$(curl -f http://localhost)\n",
        "#!/bin/sh\ncurl -f http://localhost || exit 0\n",
        "#!/bin/sh\ncurl -f http://localhost | grep ok\n",
        "#!/bin/sh\ncurl -f http://localhost ||\n",
        "#!/bin/sh\nif ! curl -f http://localhost; then exit 0; fi\n",
        "#!/bin/sh\nif ! curl -f http://localhost\n",
        "#!/bin/sh\nwhile curl -f http://localhost; do sleep 1; done\n",
        "#!/bin/sh\n[ -e /run/serving ] && curl -f http://localhost\n",
        "#!/bin/sh\ncurl -f http://localhost 'no end\n",
        "#!/bin/sh\nif ip addr | grep x; then\ncurl -f http://localhost\nelse\nexit 1\nfi\n",
        "#!/bin/sh\nif ip addr | grep x; then\nrm -rf /\nfi\ncurl -f http://localhost\n",
        "#!/bin/sh\nif ip addr | grep x; then\ncurl -f http://localhost\n",
    ],
)
def test_other_scripts(content: str | bytes):
    """A script that does anything else stays a script."""
    assert found(content) is None
