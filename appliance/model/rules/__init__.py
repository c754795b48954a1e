"""What no single key of the configuration can tell: what has to fit together."""
