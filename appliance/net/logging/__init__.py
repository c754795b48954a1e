"""Where log lines go: standard output, the journal of systemd, a file."""
