"""A new configuration on its way: from the first step of a start and the line `reload` to all programs."""

import appliance.net.logging.log  # noqa: F401  # before anything else imports structlog; it says why
