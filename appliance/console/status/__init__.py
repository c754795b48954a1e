"""The subcommands `status` and `alive`."""
