"""Names of discovered servers: those of their Nodes, which may be longer than ours."""

import hashlib
import re
from typing import Final

_LONGEST: Final = 63  # maximum of our names: boards have records of fixed length
_DIGEST: Final = 8
_FOREIGN: Final = re.compile(r"[^A-Za-z0-9._-]", re.ASCII)


def server_name(node: str) -> str:
    """Return the server's name: the Node's; if too long, its beginning and digits of a hash."""
    name = _FOREIGN.sub("-", node)
    if name and len(name) <= _LONGEST:
        return name
    digest = hashlib.sha256(node.encode()).hexdigest()[:_DIGEST]
    return f"{name[: _LONGEST - _DIGEST - 1]}-{digest}"
