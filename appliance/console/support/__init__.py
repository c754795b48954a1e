"""The subcommand `support`: everything that a ticket needs in one archive, without secrets."""
