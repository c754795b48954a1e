"""Applies configurations: from the first step of a start, and from the line `reload`, to all programs."""

import appliance.net.logging.log  # noqa: F401  # before anything else imports structlog; it says why
