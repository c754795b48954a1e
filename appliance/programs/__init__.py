"""Supervised programs, one module each: the only place where pure code meets IO."""

import appliance.net.logging.log  # noqa: F401  # before anything else imports structlog; it says why
