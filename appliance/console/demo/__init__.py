"""The subcommand `demo`: an appliance with generated servers."""
