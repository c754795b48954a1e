"""The digest of what all nodes have in common of their configuration: it differs where they drift apart.

It is of the keys and values as written, so that it is the same in two releases whose defaults differ, and
without values that may be secrets, as nodes tell it each other.
"""

import hashlib
from typing import Final

import msgspec

from appliance.model.document.document import Document
from appliance.model.document.tree import Plain
from appliance.model.messages.problems import Path
from appliance.model.messages.secrets import is_secret

NODES: Final = "nodes"
"""The section that says that the file is for several nodes."""

_SHARED: Final = ("cluster", "api", "ingress", "pools", "defaults")
"""Sections that are the same at all nodes even where each has a file of its own."""

_OWN: Final = ("bind", "redirect", "workers")
"""Keys in these sections that may then differ: they may name addresses of a node, or fit its processors."""

_BYTES: Final = 16


def common(document: Document) -> str:
    """Return the digest, in hexadecimal digits.

    A file with `nodes` is the same at all of them, with its values by node. Of other files only the sections
    that concern servers and frontends count.
    """
    value = document.value
    if NODES not in value:
        value = {key: _without_own(value[key]) for key in _SHARED if key in value}
    said = msgspec.json.encode(_without_secrets(value, ()), order="deterministic")
    return hashlib.blake2b(said, digest_size=_BYTES).hexdigest()


def _without_own(value: Plain) -> Plain:
    if not isinstance(value, dict):
        return value
    return {key: _without_own(each) for key, each in value.items() if key not in _OWN}


def _without_secrets(value: Plain, at: Path) -> Plain:
    if not isinstance(value, dict):
        return value
    return {
        key: _without_secrets(each, (*at, key)) for key, each in value.items() if not is_secret((*at, key))
    }
