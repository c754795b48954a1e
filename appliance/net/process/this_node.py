"""The name of this node, as `nodes` of the configuration has it."""

import os
import socket

from appliance.model.paths import NODE_VARIABLE


def this_node() -> str:
    """Return the name: that of APPLIANCE_NODE, else the host's."""
    return os.environ.get(NODE_VARIABLE) or socket.gethostname()
