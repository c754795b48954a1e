"""What a virtual router's priority depends on, and the commands that it runs: all that may block."""
