"""Scripts in files that do no more than ask one URL or look for one process.

kubeadm's check_apiserver.sh and OpenShift's chk_ocp_script.sh are such scripts. What a script does is told by
its lines only; where one of them is not understood, the script stays what it is.
"""

import re
from collections.abc import Callable
from typing import Final

from appliance.translation.keepalived.commands.check_commands import Recognised, in_shell

LONGEST_SCRIPT: Final = 8192
"""Bytes of a script that is looked at."""

MARKER: Final = "/var/run/keepalived/iptables-rule-exists"
"""File by which OpenShift's dynkeepalived says that the redirect to the load balancer is in place."""

_IRRELEVANT: Final = re.compile(
    r"#.*|\s*|set [-+][a-z]+( pipefail)?|exit( [0-9$?]+)?|errorExit\(\) ?\{|\}|fi|then|else"
    r"|echo .*|[A-Za-z_]+=\S*|if ip addr .*"
)
_HANDLED: Final = re.compile(r"\s*\|\|\s*(errorExit .*|exit [1-9][0-9]*|\{.*\})$")
_MARKED: Final = re.compile(rf"\s*&&\s*\[{{1,2}}\s+-[ef]\s+{re.escape(MARKER)}\s+\]{{1,2}}$")


def recognised_script(path: str, read: Callable[[str], bytes]) -> tuple[Recognised, bool] | None:
    """Return what the script at a path looks at, and whether it also wants MARKER; None if that is uncertain.

    `read` raises OSError for what is not there.
    """
    try:
        content = read(path)
    except OSError:
        return None
    if len(content) > LONGEST_SCRIPT or not content.startswith(b"#!") or b"sh" not in content.splitlines()[0]:
        return None
    found: list[tuple[Recognised, bool]] = []
    for line in content.decode(errors="replace").splitlines():
        text = line.strip()
        if _IRRELEVANT.fullmatch(text):
            continue
        marked = _MARKED.search(text) is not None
        each = in_shell(_HANDLED.sub("", _MARKED.sub("", text)))
        if each is None:
            return None
        found.append((each, marked))
    return found[0] if len(found) == 1 else None
