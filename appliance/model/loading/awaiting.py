"""The settings used until the first configuration comes: how to log, and where to listen for it."""

from dataclasses import replace

from pydantic import ValidationError

from appliance.model.config.configuration import Config
from appliance.model.document.document import Document
from appliance.model.loading.defaults import fill
from appliance.model.snapshot.snapshot import Snapshot

_OBEYED = ("cluster", "reload", "watchdog", "log", "group")


def awaiting(document: Document | None, *, source: str, number: int) -> Snapshot:
    """Return a snapshot that serves nothing, with the YAML's settings of logs and sockets if they are right.

    With errors there, or without a YAML, it has the defaults.
    """
    values = document.value if document else {}
    given = {key: value for key, value in values.items() if key in _OBEYED}
    try:
        config = Config.model_validate(given)
    except ValidationError:
        config = Config()
    return replace(fill(config, number=number, source=source, drain=None), awaited=True)
