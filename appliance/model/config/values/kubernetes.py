"""Values that Kubernetes has a grammar for: label selectors, and the ports of discovered servers.

Every function takes whatever the file holds, returns the value, and raises ValueError with a message that
says what would be right.
"""

import re
from typing import Final

from appliance.model.messages.quoting import shown
from appliance.model.snapshot.discovery import MASTERS, RouterPort

_MASTERS_WORD: Final = "masters"
_LONGEST: Final = 1000
# The characters of keys, values and operators (kubernetes.io, Labels and Selectors): the API server, which
# knows the rest of the grammar, answers 400 to a selector that it does not understand.
_SELECTOR: Final = re.compile(r"[A-Za-z0-9!][A-Za-z0-9._/=!,() -]*", re.ASCII)


def label_selector(value: object) -> str:
    """Return a label selector of Nodes; `masters` is short for the label of OpenShift's masters."""
    if value == _MASTERS_WORD:
        return MASTERS
    if isinstance(value, str) and len(value) <= _LONGEST and _SELECTOR.fullmatch(value):
        return value
    raise ValueError(
        f"must be `masters` or a label selector such as `node-role.kubernetes.io/infra=`, not {shown(value)}"
    )


def discovered_port(value: object) -> int | RouterPort:
    """Return the port of discovered servers: a number, or a port of a router by its name."""
    if isinstance(value, str) and value in set(RouterPort):
        return RouterPort(value)
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 65535:
        return value
    raise ValueError(f"must be a port from 1 to 65535, or `http` or `https` of a router, not {shown(value)}")
