"""What is decided about several nodes together: their status, a configuration for all, an upgrade."""
