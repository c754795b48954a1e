"""What is obeyed while the first configuration is still to come: how to log, and where to listen for it."""

from dataclasses import replace

from pydantic import ValidationError

from appliance.model.config.configuration import Config
from appliance.model.document.document import read
from appliance.model.document.tree import DocumentError, Plain
from appliance.model.loading.defaults import fill
from appliance.model.snapshot.snapshot import Snapshot

_OBEYED = ("cluster", "reload", "watchdog", "log", "group")


def awaiting(text: str | bytes, *, source: str, number: int) -> Snapshot:
    """Return a snapshot that serves nothing, with what the YAML says of logs and sockets, if that is right.

    With errors there, or nothing at all, it has the defaults.
    """
    given = {key: value for key, value in _values(text).items() if key in _OBEYED}
    try:
        config = Config.model_validate(given)
    except ValidationError:
        config = Config()
    return replace(fill(config, number=number, source=source, drain=None), awaited=True)


def _values(text: str | bytes) -> dict[str, Plain]:
    try:
        return read(text).value
    except DocumentError:
        return {}
