"""Manual pages of the command, made of what `--help` shows."""
