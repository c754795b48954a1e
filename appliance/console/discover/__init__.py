"""The subcommand `discover`: servers found by the cluster's API, and the state of its requests."""
