"""Which scripts in files do no more than one look of our own."""

import pytest

from appliance.translation.keepalived.commands.check_commands import Recognised
from appliance.translation.keepalived.commands.check_scripts import LONGEST_SCRIPT, MARKER, recognised_script

pytestmark = pytest.mark.pure

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


def found(content: str | bytes | OSError) -> tuple[Recognised, bool] | None:
    """Return what a script of this content looks at."""

    def read(path: str) -> bytes:
        assert path == "/etc/keepalived/check.sh"
        if isinstance(content, OSError):
            raise content
        return content.encode() if isinstance(content, str) else content

    return recognised_script("/etc/keepalived/check.sh", read)


def test_known_scripts():
    """Kubeadm's asks one URL, and OpenShift's one URL and a file that says that the redirect is there."""
    url = "https://localhost:6443/healthz"
    assert found(KUBEADM) == (Recognised(kind="http", target=url, timeout="2"), False)
    url = "http://localhost:9444/haproxy_ready"
    assert found(OPENSHIFT) == (Recognised(kind="http", target=url), True)
    assert found("#!/bin/sh\npidof haproxy\nexit $?\n") == (
        Recognised(kind="program", target="haproxy", haproxy=True),
        False,
    )


@pytest.mark.parametrize(
    "content",
    [
        FileNotFoundError(),
        PermissionError(),
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
    ],
)
def test_other_scripts(content: str | bytes | OSError):
    """A script that is not there, or does anything else, stays a script."""
    assert found(content) is None
