"""The subcommand `discover`: what was found in the cluster's API, and how asking it goes."""
