"""The body of a Kubernetes API server's failed health answer: which of its own checks have failed.

Source: k8s.io/apiserver, pkg/server/healthz: /readyz, /livez and /healthz answer 500 with a line for each
check, `[+]ping ok` or `[-]etcd failed: reason withheld`.
"""

import re
from typing import Final

from appliance.model.messages.quoting import masked
from appliance.wire.http.http_response import ResponseError
from appliance.wire.http.response_body import ResponseBody

_FAILED: Final = re.compile(rb"^\[-\](\S{1,64}) failed", re.MULTILINE)
_NAMED: Final = 5


def failed_checks(received: bytes, method: str) -> tuple[str, ...]:
    """Return the names of the failed checks, as far as they arrived with the status line."""
    answer = ResponseBody(method)
    try:
        answer.feed(received)
    except ResponseError:
        return ()
    names = (each.decode(errors="replace") for each in _FAILED.findall(answer.body))
    return tuple(masked(name, "\ufffd") for name in names)[:_NAMED]
