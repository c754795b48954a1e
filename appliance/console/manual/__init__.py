"""Manual pages of the command, made from the texts of `--help`."""
