"""The subcommands `vip` and `vr-ids`."""
