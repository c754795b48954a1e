"""The nodes of a fleet: those that a configuration names in `nodes`, and which of them this one is."""

import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from appliance.console.output.refusal import Refused
from appliance.model.config.values import names
from appliance.model.document.document import read
from appliance.model.document.tree import DocumentError
from appliance.model.loading.by_node import ByNode
from appliance.model.loading.loading import NODE_VARIABLE, unreadable
from appliance.model.rules.node_rules import own_name
from appliance.net.files import config_file
from appliance.net.files.state_files import FileUnusable

_CORRECT_IT: Final = "correct the file, which `appliance check` judges"
_NAME_THEM: Final = "name the configuration of the nodes with --config; its key `nodes` lists their names"


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetNode:
    """A node, by its name in `nodes`; `here` is whether it is this machine."""

    name: str
    here: bool


def content(file: Path) -> bytes:
    """Return a configuration; raises Refused."""
    try:
        return config_file.read(file)
    except FileUnusable as error:
        raise Refused(f"{file}: cannot be read: {error}", step=_NAME_THEM) from error


def fleet_nodes(file: Path, text: bytes) -> tuple[FleetNode, ...]:
    """Return the nodes that a configuration names; raises Refused if it names none, or cannot be read.

    Nothing else of it needs to be right: a broken configuration is when the nodes have to be looked at.
    """
    try:
        found = ByNode(read(text)).nodes
        for each in found:
            names.name(each)
    except DocumentError as error:
        problem = unreadable(error, source=str(file))
        raise Refused(f"{problem.where}: {problem.message}", step=_CORRECT_IT) from error
    except ValueError as error:
        raise Refused(f"{file}: nodes: {error}", step=_CORRECT_IT) from error
    if not found:
        raise Refused(f"{file}: it names no `nodes`", step=_NAME_THEM)
    own = own_name(found, os.environ.get(NODE_VARIABLE) or socket.gethostname())
    return tuple(FleetNode(name=each, here=each == own) for each in found)
