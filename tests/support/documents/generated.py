"""The pages of docs/ that are made of the code."""

from collections.abc import Callable, Mapping
from typing import Final

from support.documents.commands_page import commands_page
from support.documents.configuration_page import configuration_page
from support.documents.events_page import events_page
from support.documents.glossary_page import glossary_page
from support.documents.metrics_page import metrics_page

GENERATED: Final[Mapping[str, Callable[[], str]]] = {
    "reference/configuration": configuration_page,
    "reference/commands": commands_page,
    "reference/metrics": metrics_page,
    "reference/events": events_page,
    "glossary": glossary_page,
}
"""What makes each, by its name without `.md`."""
