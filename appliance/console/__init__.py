"""The `appliance` command."""
